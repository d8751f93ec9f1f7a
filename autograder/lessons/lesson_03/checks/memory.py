"""The check of exercise 3.5: activations that are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, Worker, measure_speedup
from autograder.lessons.checking import (
    TOLERANCES,
    name_the_mistake,
    relative_difference,
    require_equal,
    twin_of,
)
from autograder.lessons.lesson_03 import twins

MAX_PEAK_SHARE = 0.6
SAVED_SLACK = 0.95
MIN_WORK = 1.08
"""FLOPs of a step over those of the plain one. Of all that a checkpoint may keep, or compute again, in a block of ours,
no choice under `MAX_PEAK_SHARE` is below 1.097; a checkpoint for each block is at 1.23 to 1.33."""
HELD_SHARE = 0.1  # of the plain peak: what Python's own objects may take
IGNORED = "the mask that a block is called with does not reach it: its texts attend to padding"
WRONG_LOGITS = {
    "every key": IGNORED,
    "no mask": f"{IGNORED}, or each position sees those before it alone",
    "last block": "one block in place of all: a lambda in a loop sees the last value of the loop variable",
    "first block": "one block in place of all: the first",
    "blocks backwards": "the blocks come in another order",
    "no dropout": "dropout is switched off",
    "no dropout in blocks": "dropout is switched off",
}


def check_checkpoint_blocks(job: Job) -> None:
    """3.5: equal gradients, dropout included, at 0.6 times the peak bytes, in at most 1.6 times the time."""
    rng = job.rng
    cases = [
        {
            "seed": job.seed(),
            "dropout": dropout,
            "num_layers": num_layers,
            "rows": int(rng.integers(6, 10)),
            "width": int(rng.integers(40, 57)),
            "is_training": is_training,
            "is_frozen": not is_training,  # the embeddings: then no input of the first block needs a gradient
        }
        for dropout, num_layers, is_training in ((0.0, 4, True), (float(rng.uniform(0.1, 0.4)), 5, False))
    ]
    answers = _with_costs(job.learner(), cases)
    plain = _with_costs(job.worker("baseline", job.baseline), cases)
    job.require(
        answers[0]["kind"] == "model",
        expected="the model that is to be called",
        got=f"a {answers[0]['kind']}",
        likely="`return model` is missing, or something else comes back",
        look="also a model that is changed in place is returned",
    )

    def name(wrong: np.ndarray, case: int, part: str) -> str:
        def is_same(twin: list[dict[str, Any]]) -> bool:
            other = twin[case][part]["logits"]
            return other.shape == wrong.shape and relative_difference(wrong, other) <= TOLERANCES["float32"]

        twin = twin_of(job, twins.CHECKPOINT_BLOCKS, "checkpointed_all", {"cases": cases})
        return name_the_mistake(WRONG_LOGITS, twin=twin, is_same=is_same)

    for number, (case, answer, right) in enumerate(zip(cases, answers, plain, strict=True)):
        for part in ("evaluated", "first", "second", "both"):
            _require_same_step(job, answer, right, part, case, lambda w, n=number, p=part: name(w, n, p))
        changed = answer["state_changed"]
        job.require(
            not changed,
            expected="the model as it was, but for what it keeps for backward",
            got=f"another state of {' and '.join(changed)}",
            likely="your function does more than it is asked for, such as `train()` or `requires_grad_`",
            look="change what runs around the blocks, and nothing else",
        )
    job.require(
        all(answer["is_mode_kept"] for answer in answers),
        expected="a model in the mode of the one that was given",
        got="one in the other mode",
        likely="a new module comes in training mode, whatever it wraps",
        look="`wrapper.train(model.training)`",
    )
    job.require(
        not answers[0]["is_drawn"],
        expected="random generators as they were",
        got="another state of them",
        likely="a seed is set, or something is drawn, while the model is changed: its dropout drops other values",
        look="no `manual_seed` in your function",
    )
    _require_less_memory(job, answers, plain)
    for answer, right in zip(answers, plain, strict=True):
        _require_work(job, answer["flops"] / right["flops"], "")
        if answer["syncs"] > right["syncs"]:
            job.flag(
                f"values leave torch {answer['syncs']} times in a step: what is kept elsewhere is not counted"
            )
    # Of the timed segments: none is told apart from one that is counted, before them or after them.
    lengths = [1]
    _require_checkpoints(job, lengths[-1])
    measure_speedup(
        job,
        function="checkpoint_segment",
        compare=lambda a, b: lengths.append(_require_same_losses(job, a, b)),
        likely=f"a step takes over {1 / job.bar:g} times the plain one: something is computed again more than once",
        look="one checkpoint for each block, none inside another",
    )
    _require_checkpoints(job, lengths[-1])


def _with_costs(worker: Worker, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers, each with what was told of its first step."""
    answers: list[dict[str, Any]] = worker.call("checkpointed_all", cases=cases)
    if all(answer["kind"] == "model" for answer in answers):
        *steps, of_another = worker.counts(len(cases) + 1)
        for answer, counts in zip(answers, steps, strict=True):
            answer |= {
                "peak": counts.peak_live_bytes + counts.old_bytes_written,
                "old": counts.old_bytes_written,
                "flops": counts.total_flops,
                "syncs": counts.num_syncs,
            }
        answers[0]["saved_by_another"] = of_another.peak_saved_bytes
    return answers


def _require_less_memory(job: Job, answers: list[dict[str, Any]], plain: list[dict[str, Any]]) -> None:
    job.counts |= {"peak_bytes": answers[0]["peak"], "peak_bytes_plain": plain[0]["peak"]}
    job.counts["peak_share"] = round(answers[0]["peak"] / plain[0]["peak"], 3)
    for answer, right, given in zip(answers, plain, ("training", "evaluation"), strict=True):
        job.require(
            answer["peak"] <= MAX_PEAK_SHARE * right["peak"],
            expected=f"at most {MAX_PEAK_SHARE:.0%} of the plain model's peak of {right['peak'] / 1e6:.1f} MB",
            got=f"{answer['peak'] / right['peak']:.0%}, of a model that was given in {given} mode",
            likely="activations are kept all the same, in memory that was there before"
            if answer["old"] > HELD_SHARE * right["peak"]
            else "one checkpoint around everything: when it is computed again, all of it is alive at once. Or only "
            "some of the blocks are checkpointed, or none"
            if answer is answers[0]
            else "the mode that the model was given in decides for good: it trains later",
            look="a checkpoint for each block: then one block at a time is alive",
        )
    elsewhere = max(answer["held"] - right["held"] for answer, right in zip(answers, plain, strict=True))
    job.require(
        elsewhere <= HELD_SHARE * plain[0]["peak"],
        expected="activations that are computed again",
        got=f"{elsewhere / 1e6:.1f} MB of them outside of torch between forward and backward",
        likely="activations are kept all the same, as NumPy arrays or bytes, where torch does not see them",
        look="a checkpoint keeps the input of a block, and computes what is inside again",
    )
    job.require(
        answers[0]["saved_by_another"] >= SAVED_SLACK * plain[0]["saved_by_another"],
        expected="`model` changed, and no other one",
        got="checkpoints in a model that your function was never given",
        likely="the class of the blocks is changed, and with it every model; a second call nests the checkpoints",
        look="set `forward` on the block, not on its class",
    )


def _require_work(job: Job, work: float, where: str) -> None:
    job.counts[f"{where}flops_over_plain"] = round(work, 3)
    job.require(
        work >= MIN_WORK,
        expected=f"activations that are computed again: at least {MIN_WORK:g} times the plain model's FLOPs in a step",
        got=f"{work:.2f} times{' in the model that is timed' * bool(where)}",
        likely="nothing, or hardly anything, is computed again: activations are kept all the same, where memory is not "
        "counted, as in a buffer that was there before",
        look="a checkpoint keeps the input of a block, and computes what is inside again",
    )


def _require_same_step(
    job: Job, answer: dict[str, Any], plain: dict[str, Any], part: str, case: dict[str, Any], name: Any
) -> None:
    tolerance, got, right, dropout = TOLERANCES["float32"], answer[part], plain[part], case["dropout"]
    is_training = part != "evaluated"
    when = f"in training, with dropout {dropout:g} under the same seed" if is_training else "in evaluation"
    when += ", of several batches whose losses go backward together" * (part == "both")
    is_same_shape = answer["before"].shape == plain["before"].shape
    is_sorted_alike = is_same_shape and np.array_equal(np.sort(answer["before"]), np.sort(plain["before"]))
    job.require(
        is_same_shape and np.array_equal(answer["before"], plain["before"]),
        expected="the same parameters in the same order",
        got="another order" if is_sorted_alike else "others",
        likely="they come in another order: a wrapper registers the blocks before the rest, or blocks are swapped"
        if is_sorted_alike
        else "weights were copied, changed or made anew, or a wrapper lists some of them twice or not at all",
        look="compare `[p.shape for p in model.parameters()]` before and after",
    )
    job.require(
        answer["are_given"],
        expected="the parameters of the model that was given",
        got="others of the same values",
        likely="a copy is changed and returned: an optimizer that was made before trains what nobody uses",
        look="compare `[id(p) for p in model.parameters()]` before and after",
    )
    if not _are_close(got["logits"], right["logits"], tolerance):
        unknown = (
            "the random numbers of dropout go on from another place: what ran before must leave them as the plain "
            "model does"
            if part == "second"
            else "dropout draws at another place"
            if is_training and dropout
            else "a block is called with other inputs, twice, or not at all"
        )
        job.require(
            False,
            expected=f"the plain model's logits {when}",
            got="other logits",
            likely=name(got["logits"]) or unknown,
            look="the forward pass is the same; only what is kept for backward changes",
        )
    missing = got["num_without"] - right["num_without"]
    job.require(
        missing <= 0,
        expected="a gradient for every parameter" + " that is not frozen" * case["is_frozen"] + f", {when}",
        got=f"none for {missing} of them",
        likely="no input of the first block needs a gradient where the embeddings are frozen, and then a checkpoint "
        "with `use_reentrant=True` cuts the graph"
        if case["is_frozen"]
        else "the graph is cut: a block ran under `no_grad` and was never computed again, or its output was detached",
        look="`torch.utils.checkpoint.checkpoint(..., use_reentrant=False)`",
    )
    job.require(
        _are_close(got["gradients"], right["gradients"], tolerance),
        expected=f"the plain model's gradients {when}",
        got=f"gradients that differ by up to {np.abs(got['gradients'] - right['gradients']).max():.3g}",
        likely="what the second forward needs, random state or mask, is kept once for each block: another forward pass "
        "before backward takes its place"
        if part == "both"
        else "the state of dropout's random numbers is lost, or kept only where the model trained when it was "
        "wrapped: the second forward drops other values than the first"
        if dropout and is_training
        else "the second forward is not the first one again, or what is frozen is made trainable on the way",
        look="`preserve_rng_state`, whose default is right",
    )
    job.require(
        is_training or _are_close(answer["predicted"], plain["predicted"], tolerance),
        expected="the plain model's logits in evaluation, under `no_grad` too",
        got="other logits",
        likely="without gradients the blocks compute something else",
        look="a checkpoint has nothing to keep there, and computes the block once",
    )


def _are_close(got: np.ndarray, right: np.ndarray, tolerance: float) -> bool:
    return got.shape == right.shape and relative_difference(got, right) <= tolerance


def _require_same_losses(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> int:
    """Returns the number of losses."""
    require_equal(
        job,
        learner["losses"],
        baseline["losses"],
        dtype="float32",
        what="losses",
        likely="over several steps the gradients are not those of the plain model",
        look="train both for ten steps from one seed and compare the losses",
    )
    return len(baseline["losses"])


def _require_checkpoints(job: Job, num_steps: int) -> None:
    """What is counted of a segment that looks like a timed one."""
    seed, told, kept = job.seed(), [], []
    for worker in (job.learner(), job.worker("baseline", job.baseline)):
        worker.call("checkpoint_counted", seconds=120.0, seed=seed, num_steps=num_steps)
        told += worker.counts()
        kept.append(max((kept for (kept,) in worker.told.call.seen["kept"]), default=0.0))
    own, plain = told
    # By autograd, and by whatever means: what a function of one's own keeps as its attributes, nobody else hears of.
    share = max((own.peak_saved_bytes + own.old_bytes_written) / plain.peak_saved_bytes, kept[0] / kept[1])
    job.counts["timed_saved_share"] = round(share, 3)
    job.require(
        share <= MAX_PEAK_SHARE,
        expected="checkpoints in the model that is timed, too",
        got=f"{share:.0%} of what the plain one keeps for backward",
        likely="some models get checkpoints and others not",
        look="every model with `blocks`",
    )
    _require_work(job, own.total_flops / plain.total_flops, "timed_")
