"""Two sides under one clock: whose waiting is left out, and that slow is decided, however slow. In real workers."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.engine.job import CheckFailed, Job, WorkerFailed
from autograder.engine.measure import measure_speedup
from autograder.engine.measure import sides as engine
from autograder.engine.measure.sides import WAITED_ALIKE, Segment, Side, settled
from autograder.engine.timing import core_seconds, decide, num_cores, verdict
from autograder.engine.timing.verdict import ALPHA_FAIL, ALPHA_PASS, MARGIN
from course_lib.measuring import Block
from tests.autograder.test_measure import FAST, HARNESS, WORK
from tests.benchmarks.waiting import judged, log_speedup, read

# Whose waiting counts


def block(order: str, baseline: list[Segment], learner: list[Segment]) -> Block:
    in_turn = {"A": iter(baseline), "B": iter(learner)}
    seconds = tuple(next(in_turn[name]).seconds for name in order)
    return Block(order=order, seconds=seconds, num_steps=1, seeds=tuple(range(len(order) // 2)))


def test_waiting_that_both_sides_had_is_left_out() -> None:
    both = [Segment(1.0, 1.0), Segment(1.0, 3.0)]
    found = block("ABBA", both, both)
    assert settled(found, both, both) == found


def test_waiting_that_one_side_alone_had_is_left_in_but_for_a_little() -> None:
    quiet, waiting = [Segment(1.0, 0.0)] * 2, [Segment(1.0, 9.0)] * 2
    for order, slow in (("ABBA", 1), ("BAAB", 0)):
        found = settled(block(order, quiet, waiting), quiet, waiting)
        # Of ten seconds it waited nine; a quarter of them, and no more, is left out.
        assert found.candidate_seconds == pytest.approx([10 - 10 * WAITED_ALIKE] * 2)
        assert found.baseline_seconds == (1.0, 1.0)
        assert found.seconds[slow] == found.candidate_seconds[0]
    a_little = [Segment(1.0, 0.3)] * 2
    assert settled(block("ABBA", quiet, a_little), quiet, a_little).candidate_seconds == (1.0, 1.0)


_segments = st.lists(st.builds(Segment, st.floats(0.01, 10), st.floats(0, 10)), min_size=2, max_size=2)


@given(_segments, _segments)
def test_both_sides_are_treated_alike(some: list[Segment], others: list[Segment]) -> None:
    """Exchanged, they get exchanged times: so a block of two equal programs is still a fair coin."""
    here = settled(block("ABBA", some, others), some, others)
    there = settled(block("ABBA", others, some), others, some)
    assert here.baseline_seconds == there.candidate_seconds
    assert here.candidate_seconds == there.baseline_seconds


@given(_segments, _segments)
def test_no_time_gets_less_than_without_waits_or_more_than_the_walls(
    some: list[Segment], others: list[Segment]
) -> None:
    found = settled(block("BAAB", some, others), some, others)
    for segments, seconds in ((some, found.baseline_seconds), (others, found.candidate_seconds)):
        for segment, second in zip(segments, seconds, strict=True):
            assert segment.seconds <= second <= segment.seconds + segment.waited + 1e-9


@pytest.mark.parametrize("load", read())
def test_on_a_busy_machine_verdicts_are_no_more_often_wrong(load: str) -> None:
    """Measured blocks of a program against itself, by the clock that leaves all waiting out and by this one.

    What lasts for some blocks is kept together, so that at the margin both may be wrong more often than promised.
    """
    rows = read()[load]
    free, alike = (np.array([log_speedup(row, clock) for row in rows]) for clock in ("waits", "alike"))
    for truth, verdict_then, promised in ((MARGIN, "pass", ALPHA_PASS), (1.0, "fail", ALPHA_FAIL)):
        wrong = judged(alike, truth, 20_000)[verdict_then]
        assert wrong <= max(promised, judged(free, truth, 20_000)[verdict_then] + 0.01)
    assert judged(alike, 1.2, 20_000)["pass"] >= judged(free, 1.2, 20_000)["pass"] - 0.01


# Slow is decided


def test_short_blocks_are_votes_for_a_fail_alone() -> None:
    slower, faster = [-0.1] * 8, [math.log(9)] * 40
    assert decide(slower, 1.5, are_short=[True] * 8).outcome == "fail"
    assert decide(faster[:39], 1.5, are_short=[True] * 39).outcome is None
    # Faster than the baseline, and yet below the bar: what is short does not say so.
    assert decide([0.1] * 39, 1.5, are_short=[True] * 39).outcome is None
    # Below the baseline, and yet above a bar below 1×.
    assert decide([-0.1] * 39, 0.5, are_short=[True] * 39).outcome is None
    assert decide([-0.8] * 8, 0.5, are_short=[True] * 8).outcome == "fail"


measures = pytest.mark.measures
further = pytest.mark.further
SLEEPS = "import time\ncalls = []\n" + FAST.replace("total = 0", "total = 0\n    calls.append(0)\n    {}")


@pytest.fixture
def job() -> Iterator[Job]:
    with contextlib.closing(Job("known", "work", FAST, HARNESS, np.random.default_rng(0))) as job:
        job.baseline, job.bar = FAST, 1.5
        yield job


def measure(job: Job) -> None:
    measure_speedup(job, compare=lambda a, b: None, function="segment", likely="it is", look="here")


@measures
@pytest.mark.parametrize(
    "times", [3, pytest.param(15, marks=further), pytest.param(100, marks=[further, pytest.mark.slow])]
)
def test_far_below_the_baseline_is_a_fail(job: Job, times: int) -> None:
    job.source = WORK.format(size=times * 200_000)
    with pytest.raises(CheckFailed, match="Slower than the baseline"):
        measure(job)
    assert any(kept.is_short for kept in job.raw_blocks)
    assert job.speed is not None and job.speed.high < 1


@measures
@further
@pytest.mark.slow
def test_steps_so_long_that_no_whole_block_would_fit_are_decided_too(job: Job) -> None:
    """A whole block would take half a minute: three steps of each segment, and one before it."""
    job.baseline = SLEEPS.format("time.sleep(0.2)")
    job.source = SLEEPS.format("time.sleep(3)")
    with pytest.raises(CheckFailed, match=r"the same work takes 1[45]\.\d times as long"):
        measure(job)
    assert len(job.raw_blocks) == 8


@measures
@further
def test_slow_at_first_is_not_slow(job: Job) -> None:
    """Compilation and imports: what comes after them is judged by whole blocks alone."""
    job.source = SLEEPS.format("if len(calls) < 4: time.sleep(0.5)").replace("200000", "60000")
    measure(job)
    assert sum(kept.is_short for kept in job.raw_blocks) <= 1


@measures
@further
@pytest.mark.parametrize(
    "stall",
    [
        "if len(calls) > 40 and len(calls) % 5 == 0: time.sleep(1.5)",  # in steps that are not timed, too
        "if len(calls) > 40: time.sleep(1)",
        "if len(calls) > 40 and not len(calls) % 9: time.sleep(12)",  # one run and the time is over
    ],
)
def test_stalling_is_a_fail_with_its_own_reason(
    job: Job, monkeypatch: pytest.MonkeyPatch, stall: str
) -> None:
    for module in (engine, verdict):
        monkeypatch.setattr(module, "MAX_SECONDS", 5.0)
    job.source = SLEEPS.format(stall)
    with pytest.raises(CheckFailed, match=r"not done after|Slower than the baseline"):
        measure(job)


@measures
@further
@pytest.mark.parametrize(
    ("deed", "says"),
    [
        ("os._exit(3)", "ended early"),
        ("any(print('x' * 10**6) for _ in iter(int, 1))", "wrote or printed more"),
    ],
)
def test_crashing_and_flooding_are_no_measurement(job: Job, deed: str, says: str) -> None:
    job.source = "import os\n" + SLEEPS.format(f"if len(calls) > 40: {deed}")
    with pytest.raises(WorkerFailed, match=says):
        measure(job)
    assert job.speed is None


@measures
@further
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how long a process waited")
def test_a_wait_for_children_of_its_own_is_no_wait_for_the_core(job: Job) -> None:
    """The timed process is ready all the time, and its children have the cores for most of it."""
    job.source = (
        "import os\n"
        + FAST.replace("def work(seed)", "def really_work(seed)")
        + f"""
def work(seed):
    children = set()
    for _ in range({3 * num_cores()}):
        child = os.fork()
        if child == 0:
            really_work(seed)
            os._exit(0)
        children.add(child)
    while children:
        children.discard(os.waitpid(-1, os.WNOHANG)[0])
"""
    )
    worker = job.learner()
    side = Side(worker, "segment", job)
    (had, waited), cpu = core_seconds(worker.pid), worker.cpu_seconds()
    segment, _ = side._timed(0, 12)
    had, waited = core_seconds(worker.pid)[0] - had, core_seconds(worker.pid)[1] - waited
    of_children = worker.cpu_seconds() - cpu - had
    assert of_children > 0
    assert segment.waited <= max(0.0, waited - of_children) + worker.unread_seconds + 0.05
