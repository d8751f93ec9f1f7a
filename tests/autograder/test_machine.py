"""The machine in plain words: what holds here is said, and one thing to improve at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course.lessons import lesson_ids, load_lesson
from autograder.engine.calibration import Reached
from autograder.engine.sandbox.start import SandboxStatus, probe
from autograder.kernel import machine as module
from autograder.kernel.machine import machine

STRONG = SandboxStatus("bubblewrap", "bubblewrap starts")
WEAK = SandboxStatus("limits", "bubblewrap is not installed", "install it: sudo apt install bubblewrap")
MIDDLE = SandboxStatus("landlock", "bubblewrap is not installed", "install it: sudo apt install bubblewrap")
REACHED = Reached(
    speedup=2.0, low=1.9, high=2.1, bar=1.5, blocks=8, spread=0.02, of="", measured="2026-11-22"
)
CALIBRATED = {"1.1": REACHED, "6.6": replace(REACHED, speedup=1.5)}


def test_the_card_and_the_text_say_the_same_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    found = machine()
    text, html = repr(found), found._repr_html_()
    timed = [e for number in lesson_ids() for e in load_lesson(number).exercises if e.clock]
    assert f"in {len(timed)} exercises" in text and "is not calibrated" in text
    assert probe().level in text
    shown = " ".join(re.sub("<[^>]+>", "", html).replace("&#39;", "'").split())
    for line in text.splitlines():
        assert line.partition(": ")[2] in shown
    assert html.count("<dt") == html.count("<dd") == len(found.facts)


def test_one_thing_to_improve_the_most_useful_first() -> None:
    def advice(
        cores: int = 4, memory: float = 16.0, status: SandboxStatus = STRONG, calibrated: dict = CALIBRATED
    ) -> str:
        return module._advice(cores, memory, status, calibrated)

    assert "Close other programs" in advice(1, 2.0, WEAK, {})
    assert "sudo apt install bubblewrap" in advice(1, 16.0, WEAK, {})
    assert "workbook calibrate" in advice(1, 16.0, MIDDLE, {})
    assert "sudo apt install bubblewrap" in advice(1, 16.0, MIDDLE)
    assert "undecided" in advice(1)
    assert advice() == ""
    assert "Nothing here needs a change." in repr(module.Machine(facts=(), advice=advice()))


def test_what_the_clock_cannot_show_here_is_named() -> None:
    assert "cannot show the speedup of 6.6: counts decide" in module._measured(CALIBRATED)
    assert "is calibrated" in module._measured({"1.1": REACHED})


@pytest.mark.parametrize(
    ("gpu", "says"), [("", "Only a GPU"), ("NVIDIA T4", "your GPU"), ("Apple GPU (mps)", "processor")]
)
def test_what_is_counted_depends_on_the_gpu(gpu: str, says: str) -> None:
    assert says in module._counted(gpu)
    assert (gpu or "no lesson needs one") in module._hardware(1, 3.6, gpu)
    assert "1 core, 4 GiB" in module._hardware(1, 3.6, gpu)
