"""The check of exercise 6.4: several micro-batches, one exchange of gradients, one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, Worker, failure
from autograder.lessons.checking import are_equal, name_the_mistake, require_left_alone
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import (
    EVALUATED,
    FROM_IDS,
    FROZEN_MOVED,
    HIDDEN,
    OTHER_MODES,
    ROUNDED_AWAY,
    SECONDS,
    require_together,
)

BOOKKEEPING = 2  # messages of a step that carry no gradients, such as the number of samples
SHARE_OUTSIDE = 0.25  # of the gradients' elements: what crosses outside of backward is no count any more
WORLD_SIZE = 3
NUM_WARM_UP = 2  # plain backwards of the harness: the last one shows how many buckets there are
# Of each step; four come after an error; in the last one a row has no loss.
MICRO_BATCHES = (4, 2, 3, 3, 2, 2, 3, 3)
NUM_FIRST = len(MICRO_BATCHES) - 5
SAME = 5e-5  # of what the weights move in a step: gradients in half precision cost five times that
REPEATED = 2  # the step whose first micro-batch is its last once more

_MISTAKES = {
    "sum of micro-batch means": "loss not rescaled: the micro-batches' means are added up",
    "sum of rank means": "each rank divides by its own number of samples, and the ranks are added up",
    "mean of rank means": "each rank divides by its own number of samples: a mean of rank means",
    "mean of micro-batch means": "loss not rescaled by samples: small micro-batches weigh as much as large ones",
    "not divided by the ranks": "loss not rescaled: DDP divides the sum over ranks by world_size once more",
    "a sum over all samples": "a sum over all samples, never divided by their number",
    "a sum over all samples by ranks": "a sum of losses that is never divided by samples: DDP divides by ranks alone",
    "old gradients": "old gradients are left in: what was there before the call is added to",
    "large losses left out": ROUNDED_AWAY,
    "the last micro-batch alone": "the last micro-batch alone counts: gradients are dropped between micro-batches",
}


def check_accumulate(job: Job) -> None:
    """6.4: one all-reduce per bucket and optimizer step, the big batch's step, and sync on again after an error."""
    job.talks = True
    rng = job.rng
    rows = [rng.integers(1, 10, size=(WORLD_SIZE, number)) for number in MICRO_BATCHES]
    rows[0][0] += 12  # so that ranks and micro-batches of the first step surely differ
    rows[0][:, 1] += 5
    rows[1][-1, 0] = 1
    rows[REPEATED][:, 0] = rows[REPEATED][:, -1]
    arguments: dict[str, Any] = {
        "seed": job.seed() % 10**6,
        "rows": [step.tolist() for step in rows],
        "optimizer": {
            "lr": round(rng.uniform(0.1, 0.4), 3),
            "momentum": round(rng.uniform(0.3, 0.9), 3),
            "weight_decay": 0.1,
        },
    }
    answer = job.learner().call("accumulated", seconds=SECONDS, **arguments)
    ranks = require_together(job, answer)
    twin = job.twin(baselines.nothing(job.entry))
    expected = twin.call("accumulated_alone", **arguments)
    for number, answer in enumerate(ranks):
        _put_told(job, number, answer)
    num_buckets = ranks[0]["num_buckets"]
    _require_kept(job, ranks)
    for number in range(NUM_FIRST):
        steps = [rank["steps"][number] for rank in ranks]
        _require_one_exchange(job, steps, num_buckets, MICRO_BATCHES[number])
        _require_one_step(job, steps)
    job.counts["buckets"] = num_buckets
    job.counts["all_reduces"] = sum(step["all_reduces"] for step in ranks[0]["steps"][:NUM_FIRST])
    job.counts["optimizer_steps"] = NUM_FIRST
    for number in range(NUM_FIRST):
        steps = [rank["steps"][number] for rank in ranks]
        if not all(are_equal(step["weights"], expected["weights"][number], "float32") for step in steps):
            _fail_by_name(steps, expected["weights"][number], rows[number], twin, arguments, number)
        _require_unrounded(job, steps, expected, number)
    job.require(
        all(step["is_apart_dropped"] for rank in ranks for step in rank["steps"]),
        expected="no old gradient left in any parameter of the optimizer",
        got="one, of a parameter that the optimizer has and the model has not",
        likely="`model.zero_grad()` drops the model's old gradients alone: the optimizer steps with the others",
        look="`optimizer.zero_grad()`",
    )
    for late, number in enumerate(range(NUM_FIRST, len(MICRO_BATCHES) - 1)):
        _require_on_its_way(job, [rank["errors"][late] for rank in ranks])
        _require_as_ever(job, ranks, expected, number, num_buckets, late)
    for rank in ranks:
        for step in rank["steps"]:
            require_left_alone(job, *step["switches"], when="before the call")
    last = [rank["steps"][-1] for rank in ranks]
    _require_one_step(job, last)
    job.require(
        all(step["is_nan"] for step in last),
        expected="weights that are NaN after a step in which a sample of one rank has the loss NaN, as in one process",
        got="numbers",
        likely=HIDDEN,
        look="whoever trains must see that the model has diverged: take all the samples",
    )


def _put_told(job: Job, rank: int, answer: dict[str, Any]) -> None:
    """Put in what was told of a rank: the buckets of a plain backward, and of each call its steps and messages."""
    told = job.learner().told.call
    counts = [each for each in told.counts if each.of == f"rank {rank}"]
    warm_up, counts = counts[:NUM_WARM_UP], counts[NUM_WARM_UP:]
    answer["num_buckets"] = warm_up[-1].num_gradient_all_reduces
    for number, (step, own, of_ddp) in enumerate(
        zip(answer["steps"], counts[::2], counts[1::2], strict=True)
    ):
        sent = [row for row in told.seen[f"rank {rank}"] if row[0] == number]
        messages, outside, crossed = (int(sum(row[place] for row in sent)) for place in (1, 2, 3))
        step |= {
            "gradient_all_reduces": of_ddp.num_gradient_all_reduces,
            "all_reduces": max(messages, of_ddp.num_gradient_all_reduces),
            "share_outside": outside / len(step["weights"]),
            "share_crossed": crossed / len(step["weights"]),
            "optimizer_steps": own.num_optimizer_steps,
            "rows": own.num_rows,
        }


def _require_kept(job: Job, ranks: list[dict[str, Any]]) -> None:
    steps = [step for rank in ranks for step in rank["steps"]]
    switched = [step for step in steps if step["modes_changed"] or step["modes_left"]]
    in_training = [step for step in switched if not step["in_evaluation_mode"]]
    job.require(
        not switched,
        expected="all parts of the model in the mode in which they came, in the forwards and after the call",
        got="another mode",
        likely=EVALUATED if any(step["has_evaluated"] for step in in_training) else OTHER_MODES,
        look="the mode is the caller's affair: leave it as it is",
    )
    job.require(
        not any(error["modes_left"] for rank in ranks for error in rank["errors"]),
        expected="all parts of the model in the mode in which they came, also after an error",
        got="another mode",
        likely="a mode is switched, and put back only where nothing goes wrong",
        look="the mode is the caller's affair: leave it as it is",
    )
    job.require(
        not any(step["is_changed"] for step in steps),
        expected="the micro-batches as they were before the call",
        got="fewer, or others",
        likely="micro-batches, or parts of them, are taken out of the caller's own, or written over: the next epoch "
        "would have others",
        look="a slice such as `micro_batches[:-1]` is a new list, and the last one stays where it is",
    )


def _require_unrounded(job: Job, steps: list[dict[str, Any]], expected: dict[str, Any], number: int) -> None:
    right = expected["weights"][number]
    way = np.linalg.norm(right - (expected["weights"][number - 1] if number else expected["start"]))
    away = max(float(np.linalg.norm(step["weights"] - right) / way) for step in steps)
    job.require(
        away <= SAME,
        expected=f"a step as in one process, within {SAME:g} of all that the weights move (step {number})",
        got=f"weights that are {away:.2g} of it away",
        likely="almost right: a loss that is not quite the mean cross-entropy, a step that is not quite the "
        "optimizer's, or gradients that are rounded",
        look="gradients in float32, divided by samples alone, and `optimizer.step()`",
    )


def _require_one_step(job: Job, steps: list[dict[str, Any]]) -> None:
    for rank, step in enumerate(steps):
        job.require(
            step["optimizer_steps"] == 1,
            expected=f"1 optimizer step of a call, on rank {rank}",
            got=f"{step['optimizer_steps']}",
            likely="a step after every micro-batch, or none",
            look="one `optimizer.step()` for each call of your function",
        )


def _require_one_exchange(job: Job, steps: list[dict[str, Any]], num_buckets: int, num_micro: int) -> None:
    of_gradients = max(step["gradient_all_reduces"] for step in steps)
    job.require(
        of_gradients <= num_buckets,
        expected=f"{num_buckets} buckets × 1 optimizer step = {num_buckets} all-reduces of gradients",
        got=f"{of_gradients}",
        likely=(
            f"gradients cross at every micro-batch ({num_micro} a step): `no_sync` is missing, or only `backward` is "
            "inside it, while DDP decides in `forward`"
        )
        if of_gradients >= num_buckets * num_micro
        else "more than one backward of each step is synchronised, as where the last is known by its batch, which may "
        "come twice",
        look="all micro-batches but the last belong inside `with model.no_sync():`, forward *and* backward",
    )
    beside = max(step["all_reduces"] for step in steps)
    job.require(
        min(step["all_reduces"] for step in steps) > 0,
        expected="gradients that cross ranks, in messages of `torch.distributed`",
        got="a step in which no message was seen",
        likely="the ranks exchange their gradients by another road, or not at all: DDP's own exchange hides behind the "
        "last backward",
        look="the last micro-batch outside `no_sync`: then DDP exchanges in its backward what all have added up",
    )
    job.require(
        beside <= num_buckets + BOOKKEEPING,
        expected=f"at most {BOOKKEEPING} messages beside the {num_buckets} of the buckets",
        got=f"{beside - of_gradients}",
        likely="the ranks ask each other more often than they need: for every micro-batch, or for each parameter",
        look="one number for the whole step, such as its samples on all ranks, crosses once",
    )
    crossed = max(step["share_crossed"] for step in steps)
    job.require(
        crossed < 1 + SHARE_OUTSIDE,
        expected="each gradient once in messages between the ranks",
        got=f"{crossed:.1f} times as many numbers as there are gradients",
        likely="the gradients of each micro-batch are sent by themselves, in whatever message or backward",
        look="all micro-batches but the last inside `no_sync`: then the last backward sends what all have added up",
    )
    job.require(
        max(step["share_outside"] for step in steps) < SHARE_OUTSIDE,
        expected="gradients that cross in the last backward",
        got="as many numbers as there are gradients, in a message outside every backward",
        likely="the gradients cross after the last backward, by hand: no exchange hides behind the computation",
        look="the last micro-batch outside `no_sync`: then DDP exchanges in its backward what all have added up",
    )


def _fail_by_name(
    steps: list[dict[str, Any]],
    expected: np.ndarray,
    rows: np.ndarray,
    twin: Worker,
    arguments: dict[str, Any],
    number: int,
) -> None:
    """The weights are wrong after a step."""
    likely = ""
    if not all(are_equal(step["weights"], steps[0]["weights"], "float32") for step in steps):
        likely = (
            "the ranks' weights differ: the last micro-batch is inside `no_sync` too, so nothing was exchanged"
            if not steps[0]["gradient_all_reduces"]
            else "the ranks' weights differ: gradients are changed after the exchange, by other numbers on each rank"
        )
    elif any(step["rows"] < sum(own) for step, own in zip(steps, rows, strict=True)):
        likely = "a micro-batch is left out"
    elif any(step["has_own_rate"] for step in steps):
        likely = (
            "the learning rate is changed for the step, in place of the gradients: momentum remembers gradients, and "
            "gets those of another loss"
        )
    elif all(step["is_from_ids"] for step in steps):
        likely = FROM_IDS
    elif number == 0:
        likely = name_the_mistake(
            _MISTAKES,
            twin=lambda mistake: twin.call("accumulated_alone", mistake=mistake, **arguments)["weights"][0],
            is_same=lambda wrong: are_equal(steps[0]["weights"], wrong, "float32"),
        )
    if not likely and any(step["frozen_moved"] for step in steps):
        likely = FROZEN_MOVED
    away = max(float(np.abs(step["weights"] - expected).max()) for step in steps)
    raise failure(
        expected=f"on every rank the weights of one process that takes all micro-batches as one batch (step {number})",
        got=f"weights that differ from those by up to {away:.3g}",
        likely=likely or "gradients of an earlier step are left in, or the loss is divided by another number",
        look="loss sum × world_size / samples of the whole step on all ranks; DDP's average makes a sum of it",
    )


def _require_on_its_way(job: Job, errors: list[dict[str, Any]]) -> None:
    for found in errors:
        job.require(
            found["raised"] == found["right"] and found["is_its_own"],
            expected="the error of a micro-batch that cannot be computed, as it was raised",
            got=f"{found['raised']}: {found['said']}"
            if found["raised"]
            else "none: the step went on without that micro-batch",
            likely="the error is caught, and another one raised in its place"
            if found["raised"]
            else "an `except` that swallows errors: the gradients are those of fewer samples, and nobody knows",
            look="let it pass; only put things back on its way",
        )
        job.require(
            found["kept"] == 0.0,
            expected="weights as they were, when a micro-batch raises",
            got=f"weights changed by up to {found['kept']:.3g}",
            likely="the step is made although a micro-batch is missing, as in a `finally`",
            look="what is put back on the way out is `no_sync`, nothing else",
        )


def _require_as_ever(
    job: Job,
    ranks: list[dict[str, Any]],
    expected: dict[str, Any],
    number: int,
    num_buckets: int,
    late: int,
) -> None:
    """What comes after an error: a plain backward, and the next call."""
    errors, steps = [rank["errors"][late] for rank in ranks], [rank["steps"][number] for rank in ranks]
    plain, weights = expected["plain"][number], expected["weights"][number]
    is_plain_right = not any(found["after"] for found in errors) and all(
        are_equal(found["gradients"], plain, "float32") for found in errors
    )
    are_right = all(are_equal(step["weights"], weights, "float32") for step in steps)
    job.require(
        not is_plain_right or are_right,
        expected="after an error in a micro-batch: a next call that makes the step of one process",
        got="other weights, although the ranks exchange their gradients",
        likely="something of the failed call is left in, or the state of the optimizer is changed beside its step",
        look="an error takes nothing away and leaves nothing behind: the optimizer's state, its rates, the gradients",
    )
    job.require(
        is_plain_right and are_right,
        expected="after an error in a micro-batch: a next step that exchanges gradients again",
        got=errors[0]["after"] or "gradients that stay on their rank, or others than those of one process",
        likely="`no_sync` is left open when an exception is raised, or a hook in its place is left: from then on every "
        "rank trains alone, in silence",
        look="`with`, or `try … finally`: the way out must put it back",
    )
    _require_one_exchange(job, steps, num_buckets, MICRO_BATCHES[number])
    _require_one_step(job, steps)
