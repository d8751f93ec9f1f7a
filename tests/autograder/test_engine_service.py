"""The engine beside a kernel: started ahead, kept, interrupted, restarted, and gone when the kernel is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from autograder.engine.service import EngineService

RIGHT = """\
from autograder import exercise

@exercise("0.1")
def speedup(a, b):
    if a <= 0 or b <= 0:
        raise ValueError("zero")
    return a / b
"""
ENDLESS = RIGHT.replace("    return a / b", "    while True: pass")
CHECK = "from autograder import check; check('0.1')"
PID = "from autograder.kernel import exercises; print(exercises._ENGINE._process and exercises._ENGINE._process.pid)"
PATIENCE = 60.0

pytestmark = pytest.mark.timeout(180)


class Kernel:
    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str) -> list[dict[str, Any]]:
        """The contents of the cell's outputs."""
        said: list[dict[str, Any]] = []
        self.client.execute_interactive(
            code, timeout=PATIENCE, output_hook=lambda message: said.append(message["content"])
        )
        return said

    def engine(self) -> psutil.Process | None:
        text = "".join(content.get("text", "") for content in self.run(PID)).strip()
        return None if text == "None" else psutil.Process(int(text))

    def check(self) -> float:
        (number,) = [
            c["data"]["text/plain"] for c in self.run(CHECK) if "execution_count" in c and "data" in c
        ]
        return float(number)

    def begin_check(self) -> tuple[str, psutil.Process, list[psutil.Process]]:
        """Begin a check that never ends: its message, the engine, and what it has started for this check."""
        self.run(RIGHT)
        assert self.check() == 1
        engine = self.engine()
        assert engine
        lasting = set(engine.children(recursive=True))
        self.run(ENDLESS)
        asked = self.client.execute(CHECK)
        while not (workers := set(engine.children(recursive=True)) - lasting):
            time.sleep(0.02)
        return asked, engine, list(workers)

    def replies(self, *asked: str) -> list[dict[str, Any]]:
        """The contents of the replies to these messages."""
        found: dict[str, dict[str, Any]] = {}
        while found.keys() < set(asked):
            message = self.client.get_shell_msg(timeout=PATIENCE)
            found[message["parent_header"]["msg_id"]] = message["content"]
        return [found[message] for message in asked]

    def outputs(self, asked: str) -> list[dict[str, Any]]:
        """What the cell shows in the end, as a notebook that is saved then holds it."""
        shown: list[dict[str, Any]] = []
        waits = False
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "clear_output":
                waits = True
            elif kind in ("display_data", "execute_result", "stream", "error"):
                shown = [content] if waits else [*shown, content]
                waits = False
            elif kind == "status" and content["execution_state"] == "idle":
                return shown


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def assert_gone(processes: list[psutil.Process], seconds: float = 10.0) -> None:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    assert not [process for process in alive if process.is_running() and process.status() != "zombie"]


def test_one_engine_is_started_by_the_cell_and_serves_every_check(kernel: Kernel) -> None:
    kernel.run(RIGHT)
    engine = kernel.engine()
    assert engine and engine.is_running()
    assert kernel.check() == 1
    kernel.run(RIGHT.replace("a / b", "b / a"))
    (card,) = kernel.outputs(kernel.client.execute(CHECK))  # and nothing of the progress that was shown
    assert card["data"]["text/plain"] == "0" and "Not yet" in card["data"]["text/html"]
    assert kernel.engine() == engine


@pytest.mark.further
def test_an_engine_that_died_is_started_again(kernel: Kernel) -> None:
    kernel.run(RIGHT)
    engine = kernel.engine()
    assert engine
    engine.kill()
    assert kernel.check() == 1
    assert kernel.engine() != engine


@pytest.mark.further
def test_the_stop_button_ends_a_check_and_the_next_one_works(kernel: Kernel) -> None:
    asked, engine, workers = kernel.begin_check()
    below = kernel.client.execute("print('below')")
    kernel.manager.interrupt_kernel()
    card, error = kernel.outputs(asked)
    assert "Stopped" in card["data"]["text/html"] and "Nothing is lost" in card["data"]["text/plain"]
    assert "progress" not in card["data"]["text/html"]
    assert error["traceback"] == ["Stopped: the cells below were not run."]
    assert [reply["status"] for reply in kernel.replies(asked, below)] == ["error", "aborted"]
    assert_gone(workers)
    kernel.run(RIGHT)
    assert kernel.check() == 1
    assert kernel.engine() == engine  # warm, as it was


@pytest.mark.further
def test_a_killed_kernel_takes_its_engine_along_in_the_middle_of_a_check(kernel: Kernel) -> None:
    _, engine, workers = kernel.begin_check()
    family = [engine, *workers, *engine.children(recursive=True)]
    kernel.manager.shutdown_kernel(now=True)
    assert_gone(family)


@pytest.mark.further
def test_an_engine_that_is_stopped_while_it_prepares_leaves_nothing() -> None:
    service = EngineService()
    engine = psutil.Process(service.start().pid)
    family = [engine]
    while len(family) < 3 and engine.is_running():  # until the sandbox is on its way
        family = [engine, *engine.children(recursive=True)]
        time.sleep(0.02)
    service.stop()
    assert_gone(family)
