"""The engine on whole notebooks, from the command line, in a kernel and under pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.engine import check as engine
from autograder.engine import evidence
from autograder.engine import job as engine_job
from autograder.engine.check import check_source
from autograder.engine.job import Job
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox.start import SandboxStatus
from autograder.engine.workers import Worker, at_once
from autograder.notebooks.check import check_notebook
from autograder.show.card import result_html, result_text, speed_plot
from autograder.show.score import Score
from course_lib.base.errors import UserError
from tests.autograder.results import made_speed
from tests.autograder.solutions import reference_sources
from tests.everyday import first_of
from tests.kernels import run_all_cells

RIGHT = """\
@exercise("0.1")
def speedup(a, b):
    if a <= 0 or b <= 0:
        raise ValueError("zero")
    return a / b
"""
WRONG = RIGHT.replace("a / b", "b / a")
EXERCISE_KEYS = {
    "id",
    "score",
    "max_score",
    "verdict",
    "reason",
    "speedup",
    "counts",
    "sandbox",
    "evidence",
    "review",
}


def write_notebook(folder: Path, *sources: str, name: str = "00_start_here.ipynb") -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    path = folder / name
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_a_cells_annotations_are_what_they_are_in_a_notebook() -> None:
    """Not texts, as in a module that begins with a `__future__` import: libraries read them."""
    annotated = RIGHT.replace("(a, b)", "(a: float, b: float)")
    reads = "assert speedup.__annotations__['a'] is float\n"
    assert check_source("0.1", annotated + reads).verdict == "pass"


@pytest.mark.further
def test_a_notebook_from_the_command_line(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, "import os", RIGHT)
    ran = run("-m", "autograder.cli.main", "check", str(path), "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["lesson"], report["score"], report["max_score"]) == ("00", 1, 1)
    assert set(report["exercises"][0]) == EXERCISE_KEYS
    record = evidence.read(Path(report["exercises"][0]["evidence"]))
    assert record["source"] == RIGHT and record["versions"]["torch"] and record["threads"] == 1


@pytest.mark.further
def test_the_answer_no_is_exit_1_and_a_user_error_exit_2(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, WRONG)
    ran = run("-m", "autograder.cli.main", "check", str(path))
    assert ran.returncode == 1 and "upside down" in ran.stdout
    ran = run("-m", "autograder.cli.main", "check", str(tmp_path / "missing.ipynb"))
    assert ran.returncode == 2 and len(ran.stderr.splitlines()) == 1


@pytest.mark.further
def test_evidence_is_run_again(tmp_path: Path) -> None:
    result = check_source("0.1", WRONG)
    ran = run("-m", "autograder.cli.main", "check", "--evidence", result.evidence, "--json")
    assert ran.returncode == 1, ran.stderr
    again = json.loads(ran.stdout)
    assert again["exercises"][0]["verdict"] == "fail"
    damaged = tmp_path / "evidence.json"
    damaged.write_text("{}")
    ran = run("-m", "autograder.cli.main", "check", "--evidence", str(damaged))
    assert ran.returncode == 2 and "not an evidence file" in ran.stderr


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            ZeroDivisionError("division\nby zero"),
            "(ZeroDivisionError: division by zero). This is not your mistake",
        ),
        (UserError("the disk is full; free space"), "the disk is full; free space"),
    ],
)
def test_a_mistake_of_ours_is_a_result_and_the_next_exercise_is_checked(
    error: Exception, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Job.learner

    def breaks(job: Job) -> Worker:
        if job.exercise_id == "1.3":
            raise error
        return learner(job)

    monkeypatch.setattr(Job, "learner", breaks)
    sources = reference_sources("01").values()
    path = write_notebook(tmp_path, *sources, name="01_efficient_training_loops.ipynb")
    broken, other = check_notebook(path, only=["1.3", "1.4"]).exercises
    assert (broken.verdict, broken.score) == ("error", 0) and says in str(broken.reason)
    assert other.verdict == "pass", other.reason


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one level")
def test_a_weaker_sandbox_than_required_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, RIGHT)
    code = (
        "import sys; from autograder.notebooks.check import check_notebook; "
        "from course_lib.base.errors import UserError\n"
        "try: check_notebook(sys.argv[1], require_sandbox='bubblewrap')\n"
        "except UserError as error: print(error)"
    )
    data = tmp_path / "data"
    ran = run("-c", code, str(path), env=os.environ | {"PATH": "/nowhere", "WORKBOOK_DATA": str(data)})
    assert "'bubblewrap' is required" in ran.stdout and "install it" in ran.stdout, ran.stderr
    assert not data.exists()


def test_a_worker_that_proves_less_than_required_gets_no_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "level", lambda job: "limits")
    monkeypatch.setattr(engine, "probe", lambda: SandboxStatus("bubblewrap", ""))
    result = check_source("0.1", RIGHT, require_sandbox="bubblewrap")
    assert (result.verdict, result.score) == ("error", 0)
    assert "proved sandbox level 'limits', and 'bubblewrap' is required" in str(result.reason)
    assert check_source("0.1", RIGHT, require_sandbox="limits").score == 1


def test_a_missing_cell_is_not_attempted(tmp_path: Path) -> None:
    (result,) = check_notebook(write_notebook(tmp_path, "x = 1")).exercises
    assert result.verdict == "not_attempted" and result.score == 0


@pytest.mark.parametrize(
    ("source", "verdict", "says"),
    [
        (RIGHT.replace("def speedup(a, b):", "def speedup(a, b)"), "fail", "SyntaxError"),
        (RIGHT.replace("a / b", "np.divide(a, b)"), "fail", "everything it needs, imports too"),
        (RIGHT.replace("speedup", "speed_up"), "fail", "defines no `speedup`"),
        (RIGHT.replace("a / b", "None"), "fail", "does not return"),
        (RIGHT.replace("a / b", "__import__('os')._exit(0)"), "error", "it ended itself"),
        (RIGHT.replace("return a / b", "raise SystemExit"), "fail", "SystemExit"),
        (RIGHT.replace("return a / b", "raise NotImplementedError"), "fail", "still the stub"),
    ],
)
def test_what_does_not_run_is_explained(source: str, verdict: str, says: str) -> None:
    result = check_source("0.1", source)
    assert (result.verdict, result.score) == (verdict, 0), result.reason
    assert says in str(result.reason)


@pytest.mark.further
def test_the_same_check_in_a_kernel(tmp_path: Path) -> None:
    nb = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(source)
            for source in ("from autograder import check, exercise", 'check("0.1")', RIGHT, 'check("0.1")')
        ]
    )
    run_all_cells(nb, tmp_path)
    before, after = nb.cells[1].outputs, nb.cells[3].outputs
    assert score_of(before) == 0 and score_of(after) == 1
    assert not [o for o in (*before, *after) if o.get("name") == "stderr"]
    card = next(o for o in after if o.output_type == "execute_result")["data"]["text/html"]
    assert "Passed" in card


def score_of(outputs: list[Any]) -> float:
    (result,) = [output for output in outputs if output.output_type == "execute_result"]
    return float(result["data"]["text/plain"])


@pytest.mark.further
def test_what_a_kernel_patches_changes_no_points(tmp_path: Path) -> None:
    nb = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(source)
            for source in (
                "from autograder import check, exercise",
                WRONG,
                "import time, autograder.engine.check\ntime.monotonic = lambda: 0.0\nspeedup = lambda a, b: a / b\n"
                "autograder.engine.check.check_source = lambda *a, **k: {'score': 1, 'verdict': 'pass'}",
                'check("0.1")',
            )
        ]
    )
    run_all_cells(nb, tmp_path, allow_errors=True)
    results = [o for o in nb.cells[3].outputs if o.output_type == "execute_result"]
    assert not results or score_of(results) == 0


@pytest.mark.further
def test_pytest_runs_a_notebook_as_items(tmp_path: Path) -> None:
    wrong = write_notebook(tmp_path, WRONG, name="00_wrong.ipynb")
    ran = run("-m", "pytest", str(wrong), "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert ran.returncode == 1 and "upside down" in ran.stdout and "Traceback" not in ran.stdout
    right = write_notebook(tmp_path, RIGHT)
    ran = run("-m", "pytest", str(right), "-v", "-p", "no:cacheprovider", cwd=tmp_path)
    assert ran.returncode == 0 and "1 passed" in ran.stdout
    other = write_notebook(tmp_path, "print('not of this course')", name="other.ipynb")
    assert run("-m", "pytest", str(other), "-p", "no:cacheprovider", cwd=tmp_path).returncode in (4, 5)


def test_a_score_is_a_number_that_knows_why() -> None:
    result = check_source("0.1", RIGHT)
    score = Score(result.score, result)
    assert repr(score) == "1" and score + 1 == 2
    assert "Passed" in score._repr_html_()


def test_cards_escape_what_learners_write() -> None:
    result = check_source("0.1", RIGHT.replace('ValueError("zero")', "KeyError('<script>alert(1)</script>')"))
    assert "<script>" in result_text(result)
    assert "<script>" not in result_html(result)


def test_the_plot_shows_every_block_and_says_what_it_shows() -> None:
    plot = speed_plot(made_speed())
    assert plot.count("<circle") == 3 and 'role="img"' in plot and "asked for 1.5 times" in plot


def test_importing_autograder_is_light() -> None:
    code = "import autograder, sys; print([m for m in ('torch', 'numpy', 'ipywidgets', 'scipy') if m in sys.modules])"
    assert run("-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("exercise_id", first_of(["1.3", "5.5", "8.2", "3.2"]))
def test_a_check_needs_no_right_guess_of_what_is_slow_to_import(
    exercise_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_job, "_SLOW_IMPORTS", {})
    sandbox.close()  # a new one has not had the time to load it unasked
    source = reference_sources(exercise_id.partition(".")[0].zfill(2))[exercise_id]
    result = check_source(exercise_id, source)
    assert result.score == result.max_score, str(result.reason)


def test_calls_of_different_workers_are_made_at_the_same_time_and_all_end_before_an_error_is_told() -> None:
    """Each of these waits for the other one: made one after the other, both would break the barrier."""
    barrier, ended = threading.Barrier(2, timeout=30.0), []

    def meet(name: str) -> str:
        barrier.wait()
        ended.append(name)
        return name

    assert at_once(partial(meet, "own"), partial(meet, "theirs")) == ["own", "theirs"]

    def fail() -> None:
        raise ValueError("the first one's")

    with pytest.raises(ValueError, match="the first one's"):
        at_once(fail, partial(ended.append, "late"))
    assert sorted(ended) == ["late", "own", "theirs"]
