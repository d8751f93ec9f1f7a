"""Seconds from running `check("…")` to its result, in a real kernel or in JupyterLab.

    python -m tests.benchmarks.check_latency
    python -m tests.benchmarks.check_latency --browser --pictures FOLDER

"At once": the check follows on the solution's cell without a pause, in a new kernel. "Later": 10 s after it. "Again":
the next check in the same kernel. In the browser a check ends when its card is on the page.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from jupyter_client.manager import start_new_kernel

from autograder.course.lessons import find_exercise
from tests.autograder.solutions import reference_sources

READING_SECONDS = 10.0
Run = Callable[[str], float]


@contextlib.contextmanager
def in_kernel(exercise_id: str, pictures: Path | None) -> Iterator[tuple[Callable[[], object], Run]]:
    """A new kernel: what runs the solution's cell, and what runs the check and returns its seconds."""
    manager, client = start_new_kernel()

    def run(code: str) -> float:
        begun = time.perf_counter()
        reply = client.execute_interactive(code, timeout=300, output_hook=lambda message: None)
        assert reply["content"]["status"] == "ok", reply["content"]
        return time.perf_counter() - begun

    try:
        run("from autograder import check, exercise")
        yield lambda: run(_solution(exercise_id)), lambda moment: run(f'check("{exercise_id}")')
        kernel = psutil.Process(manager.provisioner.pid)  # type: ignore[union-attr]
        idle = sum(process.memory_full_info().pss for process in kernel.children(recursive=True))
        print(f"{exercise_id}: memory of the engine with all it keeps: {idle / 2**20:.0f} MiB (PSS)")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@contextlib.contextmanager
def in_browser(exercise_id: str, pictures: Path | None) -> Iterator[tuple[Callable[[], object], Run]]:
    """The same in JupyterLab, as `workbook start` opens it."""
    from tests.browser.lab import RUN_PATIENCE, Notebook, chromium, served

    slug, dashed = find_exercise(exercise_id)[0].slug, exercise_id.replace(".", "-")
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary) / "course"
        with served(folder) as address:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            start = address.replace("00_start_here", slug)
            page.goto(start)
            notebook = Notebook(page, folder / slug / f"{slug}.ipynb")
            notebook.run(notebook.code_ids()[0])

            def solve() -> None:
                notebook.write(f"exercise-{dashed}", _solution(exercise_id))
                notebook.run(f"exercise-{dashed}")

            def check(moment: str) -> float:
                cell = f"check-{dashed}"
                notebook.prompt(cell).click()
                before = notebook.prompt(cell).text_content() or ""
                begun = time.perf_counter()
                page.keyboard.press("Shift+Enter")
                page.wait_for_function(
                    "([cell, before]) => { const text = cell.querySelector('.jp-InputArea-prompt').textContent;"
                    " return text !== before && /\\d/.test(text) && cell.querySelector('.workbook-card'); }",
                    arg=[notebook.cell(cell).element_handle(), before],
                    timeout=RUN_PATIENCE,
                )
                seconds = time.perf_counter() - begun
                if pictures:
                    notebook.cell(cell).screenshot(path=pictures / f"check-{exercise_id}-{moment}.png")
                return seconds

            yield solve, check


def _solution(exercise_id: str) -> str:
    return reference_sources(exercise_id.partition(".")[0].zfill(2))[exercise_id]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exercises", nargs="*", default=["0.1", "1.3", "1.1"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    where = in_browser if arguments.browser else in_kernel
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = []
    with tempfile.TemporaryDirectory() as data:
        os.environ["WORKBOOK_DATA"] = data
        for exercise_id in arguments.exercises:
            seconds: dict[str, list[float]] = {"at once": [], "later": [], "again": []}
            for _ in range(arguments.rounds):
                for moment, pause in (("at once", 0.0), ("later", READING_SECONDS)):
                    with where(exercise_id, arguments.pictures) as (solve, check):
                        solve()
                        time.sleep(pause)
                        seconds[moment].append(check(moment))
                        if moment == "later":
                            seconds["again"].append(check("again"))
            rows.append([exercise_id, *(_range(values) for values in seconds.values())])
    print(f"| exercise | at once, s | {READING_SECONDS:g} s later, s | again, s |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def _range(values: list[float]) -> str:
    middle = sorted(values)[len(values) // 2]
    return f"{middle:.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    main()
