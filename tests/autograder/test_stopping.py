"""A check that is stopped: at once, with what was measured kept, and nothing to be won by it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from autograder.engine import evidence
from autograder.engine.check import check_source
from autograder.engine.evidence import MAX_ATTEMPTS, History
from autograder.engine.job import Job
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox.process import living
from autograder.engine.sandbox.stopping import WAITING, Stop, Stopped
from tests.autograder.solutions import reference_sources
from tests.autograder.test_engine import RIGHT, write_notebook
from tests.autograder.test_evidence import block
from tests.autograder.test_measure import FAST, HARNESS, measure

ENDLESS = RIGHT.replace("    return a / b", "    while True: pass")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))


def test_a_worker_that_never_answers_is_left_at_once() -> None:
    stop = Stop()
    threading.Timer(0.5, stop.press).start()
    result = check_source("0.1", ENDLESS, stop=stop)
    assert (result.verdict, result.score, result.evidence) == ("stopped", 0, None)
    assert "Nothing is lost" in str(result.reason) and living() == []
    assert check_source("0.1", RIGHT).verdict == "pass"


def test_a_stop_before_the_check_has_begun_counts() -> None:
    stop = Stop()
    stop.press()
    assert check_source("0.1", RIGHT, stop=stop).verdict == "stopped"


@pytest.mark.further
@pytest.mark.skipif(not sandbox.CAN_FORK, reason="elsewhere nothing is prepared")
def test_a_sandbox_that_is_still_loading_is_not_waited_for() -> None:
    sandbox.close()
    stop = Stop()
    threading.Timer(0.3, stop.press).start()
    assert check_source("0.1", RIGHT, stop=stop).verdict == "stopped"
    assert not sandbox._servers, "it was waited for until it had loaded"
    assert check_source("0.1", RIGHT).verdict == "pass"


@pytest.mark.measures
def test_the_blocks_until_the_stop_are_there_and_no_verdict() -> None:
    stop = Stop()

    def press_after_two(text: str, fraction: float) -> None:
        stop.raise_if_pressed()
        if text.startswith("Block 2"):
            stop.press()

    with contextlib.closing(Job("known", "work", FAST, HARNESS, np.random.default_rng(0))) as job:
        job.stop, job.progress = stop, press_after_two
        with pytest.raises(Stopped):
            measure(job)
        assert job.speed and job.speed.blocks == len(job.raw_blocks) == 2
        assert (
            job.conditions["cores_used"]["learner"] < 1.2
        )  # what is kept was looked at as any measurement is


@pytest.mark.further
@pytest.mark.measures
def test_the_next_check_goes_on_from_the_blocks_of_a_stopped_one() -> None:
    source = reference_sources("01")["1.1"]
    stop, said = Stop(), list[str]()

    def press_after_two(text: str, fraction: float) -> None:
        if text.startswith("Block 2"):
            stop.press()

    result = check_source("1.1", source, on_progress=press_after_two, stop=stop)
    assert result.verdict == "stopped", result.reason
    assert "2 blocks are kept" in str(result.reason) and result.speedup.blocks == 2
    assert not evidence.path_of("1.1", source).exists()  # no verdict, no record
    check_source("1.1", source, on_progress=lambda text, fraction: said.append(text))
    assert next(text for text in said if text.startswith("Block")).startswith("Block 3 of at most 42")
    assert evidence.history("1.1", source).attempts == 1


def test_what_was_kept_is_the_question_still_open_and_the_next_record_holds_it() -> None:
    path = Path(check_source("0.1", RIGHT).evidence)
    before = path.read_bytes()
    assert evidence.keep_open("0.1", RIGHT, [block(1.3)] * 3)
    assert path.read_bytes() == before
    kept = History(0, "inconclusive", (block(1.3),) * 3)
    assert evidence.history("0.1", "# The same code.\n" + RIGHT) == kept
    check_source("0.1", RIGHT)  # does not come to the clock
    assert not path.with_suffix(".open").exists()
    assert evidence.history("0.1", RIGHT) == kept


def test_a_stop_cannot_undo_the_last_attempt() -> None:
    path = Path(check_source("0.1", RIGHT).evidence)
    record = path.read_text().replace('"attempts": 0', f'"attempts": {MAX_ATTEMPTS}')
    path.write_text(record.replace('"clock_verdict": null', '"clock_verdict": "fail"'))
    evidence.keep_open("0.1", RIGHT, [block(9.0)] * 40)
    assert evidence.history("0.1", RIGHT) == History(MAX_ATTEMPTS, "fail")


@pytest.mark.parametrize("text", ["", "[]", '{"blocks": [{}]}'])
def test_a_damaged_file_of_open_blocks_counts_as_none(text: str) -> None:
    evidence.keep_open("0.1", RIGHT, [block(1.3)])
    evidence.open_blocks("0.1", RIGHT).write_text(text)
    assert evidence.history("0.1", RIGHT) == History()


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_ctrl_c_ends_workbook_check_with_one_line(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, ENDLESS)
    command = [sys.executable, "-m", "autograder.cli.main", "check", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and process.stdout
        assert process.stderr.readline() == "checking 0.1 …\n"  # from here on it can be stopped
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().strip().splitlines()
        assert process.wait(30) == 130 and process.stdout.read() == ""
    (line,) = [line for line in said if line not in ("", WAITING)]  # a busy machine takes its time
    assert line.startswith("workbook: 0.1 was stopped. Nothing is lost")
