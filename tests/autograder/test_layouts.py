"""Kernels that go by what was true before, where learner code runs: none reads or writes beside its memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from autograder.engine.job import Job
from autograder.engine.workers import CheckFailed

HARNESS = (
    "def run(code):\n    space = {}\n"
    "    exec('import numpy as np, torch\\nimport torch.nn.functional as F\\n' + code, space)\n"
    "    return space['answer']\n"
)
FUSED = """
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.{kind}([weight], fused=True)
weight.grad = torch.ones(8)
optimizer.step()
{grown}
optimizer.step()
answer = 1
"""
GROWN = "weight.grad = None\nweight.data = torch.ones(40_000_000)\nweight.grad = torch.ones(40_000_000)"
SPREAD = "weight.grad = torch.ones(1).expand(8)"
BACK = """
rows, table = np.arange(5), torch.ones(5, 7, requires_grad=True)
out = {out}
rows[:] = 10**8
out.sum().backward()
answer = float(table.grad.sum())
"""
ROWS = "torch.from_numpy(rows)"
STATE = "state = {generator}.{read}\n{changed}\n{write}\nanswer = 1"
LEGACY = STATE.format(
    generator="np.random",
    read="get_state()",
    changed="state = (*state[:2], 10**8, 0, 0.0)",
    write="np.random.set_state(state)",
)
PHILOX = "dice = np.random.Philox(1)\n" + STATE.format(
    generator="dice", read="state", changed="state['buffer_pos'] = -9", write="dice.state = state"
)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job(
        exercise_id="0.1",
        entry="solve",
        source="def solve(): pass",
        harness=HARNESS,
        rng=np.random.default_rng(0),
    )
    yield job
    job.close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        *(
            (FUSED.format(kind=kind, grown=GROWN), "another size than")
            for kind in ("Adam", "AdamW", "Adagrad")
        ),
        (FUSED.format(kind="SGD", grown=SPREAD), "another size than"),
        (LEGACY, "'pos' from 0 to 624"),
        (PHILOX, "'buffer_pos' from 0 to 4"),
    ],
)
def test_what_names_a_size_that_is_not_there_is_refused(job: Job, code: str, says: str) -> None:
    with pytest.raises(CheckFailed, match=says):
        job.learner().call("run", code=code)


@pytest.mark.parametrize(
    ("out", "right"),
    [
        (f"F.cross_entropy(table, {ROWS}, reduction='none')", 0.0),
        (f"F.cross_entropy(table.T[None, :, None], {ROWS}[None, None], reduction='none')", 0.0),
        (f"F.nll_loss(table, {ROWS}, reduction='none')", -5.0),
        (f"F.embedding_bag({ROWS}, table, torch.tensor([0, 2]), mode='sum')", 35.0),
        (f"F.embedding_bag({ROWS}, table, torch.tensor([0, 2]), mode='mean')", 14.0),
        (f"F.embedding_bag({ROWS}, table, torch.tensor([0, -9]), mode='sum')", 35.0),
    ],
)
def test_backward_goes_by_the_rows_that_forward_saw(job: Job, out: str, right: float) -> None:
    assert job.learner().call("run", code=BACK.format(out=out)) == pytest.approx(right, abs=1e-5)


def test_generators_go_on_from_their_states(job: Job) -> None:
    code = (
        "from copy import deepcopy\nimport pickle\nanswer = []\n"
        "for dice in (np.random.RandomState(3), np.random.Generator(np.random.Philox(3))):\n"
        "    dice.random(5)\n    others = [deepcopy(dice), pickle.loads(pickle.dumps(dice))]\n"
        "    drawn = dice.random(900).tolist()\n"
        "    answer += [other.random(900).tolist() == drawn for other in others]\n"
    )
    assert job.learner().call("run", code=code) == [True] * 4


@pytest.mark.parametrize(("size", "is_told"), [(8, False), (9, True)])
def test_who_gives_a_tensor_another_size_is_told_of(job: Job, size: int, is_told: bool) -> None:
    worker = job.learner()
    worker.call(
        "run",
        code=f"weight = torch.nn.Parameter(torch.ones(8))\nweight.data = torch.ones({size})\nanswer = 1",
    )
    assert any("another size by `data`" in flag for flag in worker.told.flags) is is_told
