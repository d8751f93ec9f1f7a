"""What every test shares: nothing touches the user's own folders, and torch keeps to one thread."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is loaded, by this process and its children

# Behind an optional format check that nothing here asks for, jsonschema, and with it nbformat, builds grammars for a
# second; without this module it leaves that check out. So do the processes that tests start: this folder hides it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
_HIDDEN = str(Path(__file__).parent / "hidden")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HIDDEN, os.environ.get("PYTHONPATH")]))

# A run that a shell started in the background hears no Ctrl-C, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


collect_ignore = ["fixtures"]  # notebooks there are handed in: their items would be a learner's


#: Of these files each test may go to another process than the one before. The tests of any other share what their
#: file makes once, a course or a trained model, and stay together.
ONE_BY_ONE = (
    "test_lesson_checks.py",
    "test_exploits.py",
    "test_honest.py",
    "test_lessons_run.py",
    "test_setup_small_checkout.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow is a further case, unless it is the one of its kind for every day; files that hold it come first,
    so that no process ends long after the other."""
    slow = set()
    for item in items:
        if item.get_closest_marker("slow"):
            slow.add(item.path)
            if not item.get_closest_marker("everyday"):
                item.add_marker(pytest.mark.further)
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file.endswith(ONE_BY_ONE) else file

    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Progress, evidence and handed-out notebooks go to a temporary folder. The data cache is shared on purpose:
    what it holds is found by fingerprint, and tokenising the corpus for every run would take seconds."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBOOK_DATA", str(folder / "data"))
        patch.setenv("WORKBOOK_DIR", str(folder / "notebooks"))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def without_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no reference reaches its bar: properties and counts decide alone."""
    from autograder.engine import calibration
    from tests.autograder.solutions import out_of_reach

    found = out_of_reach()
    monkeypatch.setattr(calibration, "load", lambda: found)
