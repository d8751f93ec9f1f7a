"""Timing in real workers: what is under the clock, what is not, and what is said about it. Truths are far from bars."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from autograder.engine.job import CheckFailed, Job
from autograder.engine.measure import TooSlow, measure_speedup
from autograder.engine.measure.sides import Side
from autograder.engine.timing.blocks import KeptBlock
from autograder.engine.timing.conditions import Conditions, core_seconds, num_cores

pytestmark = pytest.mark.measures

HARNESS = """
import torch

def segment(seed, num_steps):
    for _ in range(num_steps):
        learner(seed)
    return {"seed": seed}
"""
WORK = """
def work(seed):
    total = 0
    for number in range({size}):
        total += number
    return total
"""
SLOW, FAST = WORK.format(size=600_000), WORK.format(size=200_000)


@pytest.fixture
def job() -> Iterator[Job]:
    with contextlib.closing(Job("known", "work", FAST, HARNESS, np.random.default_rng(0))) as job:
        yield job


def measure(
    job: Job, *, baseline: str = SLOW, bar: float = 1.5, part: str = "", shows_idea: bool = True
) -> None:
    def compare(a: dict[str, int], b: dict[str, int]) -> None:
        assert a == b

    said = {"likely": "it is", "look": "here"}
    job.baseline, job.bar = baseline, bar
    measure_speedup(job, compare=compare, function="segment", part=part, shows_idea=shows_idea, **said)


def test_a_clear_pass_takes_the_fewest_blocks_and_says_what_the_machine_did(job: Job) -> None:
    job.reference_speedup = 3.0
    measure(job)
    assert job.speed is not None
    assert 2.4 < job.speed.estimate < 3.6
    assert len(job.raw_blocks) < 20
    assert job.review == []
    assert job.conditions["pins_found_changed"] == {}
    assert set(job.conditions["cores_used"]) == {"baseline", "learner"}
    assert 0 < job.conditions["cores_used"]["learner"] < 1.2
    assert len(job.conditions["load_average"]) == 2


def test_a_clear_fail_says_what_was_expected(job: Job) -> None:
    with pytest.raises(CheckFailed, match="Expected: a speedup of 9× over the baseline"):
        measure(job, bar=9.0)


def test_who_is_right_and_below_the_bar_earns_what_needs_no_clock(job: Job) -> None:
    """Three times as fast as the baseline, where nine times is asked for."""
    with pytest.raises(TooSlow, match="the points that need no clock are yours") as failed:
        measure(job, bar=9.0)
    assert failed.value.earns
    with pytest.raises(TooSlow, match="Expected: a speedup of 9") as failed:
        measure(job, bar=9.0, shows_idea=False)
    assert not failed.value.earns and "are yours" not in str(failed.value)


def test_who_is_slower_than_the_baseline_earns_nothing(job: Job) -> None:
    job.source = WORK.format(size=900_000)
    with pytest.raises(TooSlow, match="Slower than the baseline") as failed:
        measure(job)
    assert not failed.value.earns


def test_a_bar_that_our_reference_hardly_reaches_here_is_not_asked_of_the_clock(job: Job) -> None:
    job.reference_speedup = 1.7  # below 1.2 × 1.5
    measure(job, baseline=FAST)  # as fast as the baseline: on the clock this would fail
    assert job.counts["speed_bar_moved_to_counts"] == 1.5
    assert job.speed is None and job.raw_blocks == []


@pytest.mark.further
def test_much_faster_than_our_reference_passes_and_is_looked_at(job: Job) -> None:
    job.reference_speedup = 1.5
    measure(job, bar=1.2)
    assert len(job.review) == 1
    assert "faster than 1.5 × our reference" in job.review[0]


@pytest.mark.further
def test_a_part_goes_on_from_its_own_blocks_alone(job: Job) -> None:
    """Of another part's 40 blocks at 1× nothing is seen; of its own at 1× so much that 3× can no longer pass."""
    slow = KeptBlock(part="other", order="ABBA", seconds=(1.0,) * 4, num_steps=1, y=0.0)
    job.prior_blocks = [slow] * 40
    measure(job, part="this")
    assert {block.part for block in job.raw_blocks} == {"this"}
    job.prior_blocks = [replace(slow, part="this")] * 40
    with pytest.raises(CheckFailed, match=r"speedup of 1\.5×"):
        measure(job, part="this")


@pytest.mark.further
def test_threads_and_garbage_collection_are_put_back_and_told(job: Job) -> None:
    job.source = "import gc, torch\n" + FAST.replace(
        "total = 0", "total = 0; gc.enable(); torch.set_num_threads(3)"
    )
    measure(job)
    assert job.conditions["pins_found_changed"] == {"learner": {"collects": 1, "threads": 3}}
    assert job.review == ["it sets torch's threads to 3, where the check gives 1"]


@pytest.mark.further
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how long a process waited")
def test_work_given_to_another_process_on_the_same_core_is_not_a_wait_for_the_core(job: Job) -> None:
    """The main process gives way at the lowest priority, and spins while a child of its own does the work."""
    job.source = (
        "import contextlib, os\n"
        + SLOW.replace("def work(seed)", "def really_work(seed)")
        + """
def work(seed):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    child = os.fork()
    if child == 0:
        really_work(seed)
        os._exit(0)
    with contextlib.suppress(OSError):
        os.nice(19)
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        pass
"""
    )
    with pytest.raises(CheckFailed):
        measure(job)


RANKS = """
import multiprocessing

ranks = []

def serve(pipe):
    while True:
        pipe.send(learner(pipe.recv()))

def segment(seed, num_steps):
    if not ranks:
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        context = multiprocessing.get_context("fork")
        context.Process(target=serve, args=(theirs,), daemon=True).start()
        ranks.append(ours)
    for _ in range(num_steps):
        ranks[0].send(seed)
        ranks[0].recv()
    return {"seed": seed}
"""


@pytest.mark.further
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how long a process waited")
@pytest.mark.skipif(num_cores() < 2, reason="on one core ranks wait for each other")
def test_a_rank_that_waits_for_a_core_of_others_is_not_slower(job: Job) -> None:
    job.harness, job.source, job.talks = RANKS, SLOW, True
    side = Side(job.learner(), "segment", job)
    side._timed(0, 3)  # starts the rank
    spin = "while True: pass"
    alone = min(side._timed(0, 10)[0].seconds for _ in range(3))
    others = [
        # Each in a session of its own: the scheduler shares between those.
        subprocess.Popen([sys.executable, "-c", spin], start_new_session=True)
        for _ in range(3 * num_cores())
    ]
    try:
        time.sleep(0.5)
        waited = side.waited
        beside = min(side._timed(0, 10)[0].seconds for _ in range(3))
    finally:
        for other in others:
            other.kill()
    assert beside < 1.4 * alone
    assert side.waited - waited > alone, "others shared its core"


@pytest.mark.further
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how long a process waited")
def test_sleep_is_under_the_clock(job: Job) -> None:
    job.source = "import time\n" + FAST.replace("total = 0", "total = 0; time.sleep(0.03)")
    with pytest.raises(CheckFailed, match="Expected: a speedup"):
        measure(job)


def test_conditions_count_from_when_they_were_made() -> None:
    conditions = Conditions()
    sum(range(3_000_000))
    found = conditions.since()
    assert 0 < found.busy_share <= 1.01
    assert (found.quota_throttled or 0) >= 0
    had, waited = core_seconds(2**30)  # no such process
    assert (had, waited) == (0.0, 0.0)
