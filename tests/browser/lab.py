"""JupyterLab as a person uses it: a server by `workbook start`, a browser, and hands on a notebook."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Milliseconds. Generous: they only end a test that hangs, and machines differ by far.
SECOND = 1000
PATIENCE = 60 * SECOND
RUN_PATIENCE = 300 * SECOND
expect.set_options(timeout=PATIENCE)

#: What JupyterLab and ipywidgets write where a widget should be.
MISSING_WIDGET = re.compile(
    r"Error (displaying|creating) widget|Loading widget|widget could not be displayed"
)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """`workbook start` on a new folder: its address, the token included. Nothing it started is left behind.

    Settings, workspaces, signatures and progress of this machine's user play no part.
    """
    own = user_folder(folder)
    environment = os.environ | {
        "WORKBOOK_DATA": str(own / "data"),
        "JUPYTER_CONFIG_DIR": str(own / "jupyter"),
        "JUPYTER_DATA_DIR": str(own / "jupyter-data"),
        "JUPYTER_RUNTIME_DIR": str(own / "jupyter-runtime"),
        "IPYTHONDIR": str(own / "ipython"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "autograder.cli.main", "start", "--no-browser"]
    with subprocess.Popen(
        [*command, "--dir", str(folder), "--port", str(free_port())],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        started = [psutil.Process(process.pid)]
        try:
            assert process.stdout is not None
            printed = []
            for line in process.stdout:
                printed.append(line)
                if found := re.search(r"JupyterLab is ready: (\S+)", line):
                    yield found[1]
                    break
            else:
                raise AssertionError("workbook start ended: " + "".join(printed))
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                started += started[0].children(recursive=True)
            process.send_signal(signal.SIGINT)
            _, unreaped = psutil.wait_procs(started, timeout=30)
            left = [survivor for survivor in unreaped if is_alive(survivor)]
            for survivor in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    survivor.kill()
    assert not left, f"left running after Ctrl-C: {left}"


def user_folder(folder: Path) -> Path:
    """Where the learner of a served folder keeps what is theirs; `data` in it is their WORKBOOK_DATA."""
    return folder.parent / f"{folder.name}-user"


def is_alive(process: psutil.Process) -> bool:
    """Not ended, and not a zombie: an orphan that has ended waits for the system's first process to notice."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Notebook:
    """The notebook in front, by the ids of its cells.

    Attributes:
        path: the file on disk, in the learner's folder.
        panel: the notebook on the page.
    """

    def __init__(self, page: Page, path: Path) -> None:
        self.page, self.path = page, path
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        self.ids = [cell["id"] for cell in self.saved().cells]
        expect(page.locator(".lm-TabBar-tab.jp-mod-current")).to_contain_text(
            path.stem[:10], timeout=PATIENCE
        )
        # JupyterLab fills the page cell by cell; what comes late would push away what is clicked.
        expect(self.panel.locator(".jp-Notebook-cell")).to_have_count(len(self.ids))
        expect(page.get_by_text("| Idle")).to_be_visible()

    def saved(self) -> Any:
        """The notebook as it is on disk. While the server writes it, the file is empty or ends too early."""
        for _ in range(100):
            with contextlib.suppress(nbformat.reader.NotJSONError):
                return nbformat.read(self.path, as_version=4)
            time.sleep(0.05)
        return nbformat.read(self.path, as_version=4)

    def code_ids(self) -> list[str]:
        return [cell["id"] for cell in self.saved().cells if cell.cell_type == "code"]

    def cell(self, cell_id: str) -> Locator:
        return self.panel.locator(f'.jp-Notebook-cell[data-windowed-list-index="{self.ids.index(cell_id)}"]')

    def outputs(self, cell_id: str) -> Locator:
        return self.cell(cell_id).locator(".jp-OutputArea-output")

    def run(self, *cell_ids: str) -> None:
        """Run these cells with Shift+Enter, each after the one before has ended.

        The end is seen by the cell's number. A new kernel counts from 1 again: use `restart_and_clear` before.
        """
        for cell_id in cell_ids:
            if "jp-mod-active" not in (self.cell(cell_id).get_attribute("class") or ""):
                self.prompt(cell_id).click()
            if self.cell(cell_id).locator(".jp-InputPlaceholder").count():
                # Code that is folded away has no number; the course folds cells that end in a figure.
                self.page.keyboard.press("Shift+Enter")
                self.outputs(cell_id).first.wait_for(timeout=RUN_PATIENCE)
                continue
            before = self.prompt(cell_id).text_content() or ""
            self.page.keyboard.press("Shift+Enter")
            ended = re.compile(rf"^(?!{re.escape(before)}$)\[\d+\]:$")
            expect(self.prompt(cell_id)).to_have_text(ended, timeout=RUN_PATIENCE)

    def run_through(self, last: str) -> None:
        """Run every cell from the top to `last`, texts and folded cells too, as Shift+Enter walks."""
        self.cell(self.ids[0]).click()
        code = set(self.code_ids())
        for cell_id in self.ids[: self.ids.index(last) + 1]:
            expect(self.cell(cell_id)).to_have_class(re.compile("jp-mod-active"))
            if cell_id in code:
                self.run(cell_id)
            else:
                self.page.keyboard.press("Shift+Enter")

    def prompt(self, cell_id: str) -> Locator:
        return self.cell(cell_id).locator(".jp-InputArea-prompt").first

    def write(self, cell_id: str, source: str) -> None:
        """Replace what stands in a code cell by the keyboard."""
        self.cell(cell_id).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)

    def save(self) -> None:
        """Ctrl+S, and wait until the server has written the file."""
        with self.page.expect_response(
            lambda answer: answer.request.method == "PUT" and self.path.name in answer.url, timeout=PATIENCE
        ) as answered:
            self.page.keyboard.press("ControlOrMeta+s")
        assert answered.value.ok, answered.value.status_text

    def menu(self, *names: str) -> None:
        """Choose from the menu bar: `menu("Kernel", "Restart Kernel…")`."""
        bar, *below = names
        self.page.locator(".lm-MenuBar-item").filter(has_text=bar).click()
        for name in below:
            self.page.locator(".lm-Menu-item").get_by_text(name, exact=True).click()

    def restart_and_clear(self) -> None:
        """A new kernel, and no outputs of the old one that could pass for its own."""
        self.menu("Kernel", "Restart Kernel and Clear Outputs of All Cells…")
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()
        expect(self.panel.locator(".jp-OutputArea-output")).to_have_count(0)
        expect(self.page.get_by_text("| Idle")).to_be_visible()
