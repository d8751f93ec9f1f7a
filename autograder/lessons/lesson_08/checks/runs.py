"""The check of 8.4: a run that can be repeated, and interrupted, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import may_hash_texts, require_same_parts
from autograder.lessons.lesson_08.checks.elsewhere import require_same_elsewhere
from autograder.lessons.lesson_08.checks.training import BATCH, require_steps, require_training

_LOOK = "print the first place where two runs differ; what was drawn just before it?"
MANY = 60  # steps, so that what comes only far on shows
_UNSEEDED = {
    "first": (
        "first weights",
        "seeding after the model is built: its weights came from wherever torch stood",
    ),
    "read": (
        "samples",
        "the order of samples is drawn from a generator that the seed does not reach",
    ),
    "numpy": ("noise from NumPy", "NumPy's seed is forgotten: augmentation draws from it"),
    "python": ("noise from Python's random", "Python's seed is forgotten: augmentation draws from it"),
    "weights": ("final weights", "torch's generator is not where the seed puts it: dropout differs"),
}


def check_run(job: Job) -> None:
    """8.4: equal seeds end with equal weights, in this process, in another, and after an interruption."""
    learner, again = job.learner(), job.worker("again", job.source)
    # Odd, so that after an epoch half of a pair of Gaussians is pending; and the last batch is a short one.
    size = 4 * int(job.rng.integers(4, 6)) + 1
    per_epoch = -(-size // BATCH)
    arguments: dict[str, Any] = {
        "seed": job.seed() % 2**30,
        "size": size,
        "num_steps": 2 * per_epoch + 3,
        "dropout": 0.3,
    }
    whole = _trained(job, learner, arguments)
    require_training(job, whole, arguments)
    _require_repeated(job, whole, _trained(job, learner, arguments), "a second run")
    plain = _trained(job, learner, arguments | {"dropout": 0.0, "looks": [1], "draws": 7})
    job.require(
        np.array_equal(plain["read"][:, 0], whole["read"][:, 0]),
        expected="the same order of samples for another model, and with and without dropout",
        got="another order",
        likely="one generator shared by shuffling and dropout: a change of the model changes the data",
        look="draw the order of an epoch from a generator of its own, made from seed and epoch",
    )
    require_steps(job, plain)
    # Large gradients show what is clipped, small ones a larger eps. The last batch is of one sample above, full and
    # of three here.
    few = BATCH - 1
    for seed, other_size, num_steps, loud in ((job.seed() % 2**30, 16, 29, 12.0), (0, few, MANY, 1e-3)):
        other: dict[str, Any] = {"seed": seed, "size": other_size, "num_steps": num_steps}
        calm = other | {"dropout": 0.0, "looks": [1], "loud": loud}
        some = _trained(job, learner, calm)
        require_training(job, some, other)
        require_steps(job, some, loud)
    _require_zero(job, some, _trained(job, learner, calm))
    begun = _trained(job, learner, arguments | {"num_steps": 2})
    for further in (1, 2, 2**20):
        other = arguments | {"seed": arguments["seed"] + further, "num_steps": 2}
        _require_another(job, begun, _trained(job, learner, other))
    looked_at = _trained(job, learner, arguments | {"looks": [2, per_epoch + 1]})
    _require_training_mode(job, whole, looked_at)
    job.require(
        some["is_training"],
        expected=f"training mode in each of {MANY} steps",
        got="evaluation mode in some",
        likely="the mode is lost on the way: from some step on there is no dropout",
        look="`self.model.train()` before the steps, and after whatever looks at the model",
    )
    for stops in ([per_epoch + 2], [per_epoch], [0, 2, 2 * per_epoch + 1]):
        resumed = _trained(job, learner, arguments | {"stops": stops})
        _require_resumed(job, arguments, whole, resumed, stops)
    _require_repeated(job, whole, _trained(job, again, arguments), "a run in another process")
    stops = [per_epoch - 1]
    begun = _trained(job, learner, arguments | {"stops": stops, "num_steps": stops[0]})
    after = _trained(job, again, arguments | {"begun": {"file": begun["file"], "at": stops[0]}})
    joined = after | {
        name: np.concatenate([begun[name][: stops[0] * BATCH], after[name]]) for name in ("read", "noise")
    }
    _require_resumed(job, arguments, whole, joined | {"kept": [], "loaded": []}, stops, " in another process")
    if may_hash_texts(job.source):
        elsewhere = learner.call(
            "run_elsewhere", source=job.source, entry=job.entry, seed=arguments["seed"], seconds=60.0
        )
        require_same_elsewhere(
            job,
            elsewhere,
            what="first weights, and the same order of samples,",
            likely="the order of samples, or a seed, hangs on the `hash()` of a text or on the order of a set, which "
            "are others in each process",
        )


def _trained(job: Job, worker: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = worker.call("train_run", **arguments, disturbance=job.seed() % 2**31)
    job.require(
        "unsafe" not in answer,
        expected="a state that `torch.load(…, weights_only=True)` reads",
        got=str(answer.get("unsafe")),
        likely="objects in the state, such as a NumPy array or a generator: reading them could run code",
        look="tensors, numbers, texts, lists and dicts; `course_lib.training.reproducibility.rng_state` shows how",
    )
    return answer


def _parts(run: dict[str, Any]) -> dict[str, Any]:
    parts = {"read": run["read"][:, 0], "numpy": run["noise"][:, :2], "python": run["noise"][:, 2:]}
    return run | parts


def _require_repeated(job: Job, one: dict[str, Any], two: dict[str, Any], what: str) -> None:
    require_same_parts(
        job,
        _parts(two),
        _parts(one),
        _UNSEEDED,
        expected=f"{what} with equal seed to be equal to the bit",
        said="other WHAT",
        look=_LOOK,
    )


def _require_zero(job: Job, one: dict[str, Any], two: dict[str, Any]) -> None:
    job.require(
        all(np.array_equal(one[name], two[name]) for name in ("first", "read", "noise", "weights")),
        expected="two runs with a seed of 0 to be equal to the bit, as with any other seed",
        got="two others",
        likely="a seed of 0 is taken for none: to Python 0 is as good as False",
        look="no `if seed:` and no `seed or …`: 0 is a seed",
    )


def _require_another(job: Job, one: dict[str, Any], other: dict[str, Any]) -> None:
    one, other = _parts(one), _parts(other)
    same = [
        _UNSEEDED[name][0]
        for name in ("first", "read", "numpy", "python")
        if np.array_equal(one[name], other[name])
    ]
    job.require(
        not same,
        expected="other first weights, another order and other noise with another seed",
        got=f"the same {', '.join(same)}",
        likely="a seed is written into the code: `seed` does not reach the model, the order or the noise",
        look="look for a number where `seed` should stand",
    )


def _require_training_mode(job: Job, whole: dict[str, Any], looked_at: dict[str, Any]) -> None:
    is_same = all(
        np.array_equal(_parts(looked_at)[name], _parts(whole)[name]) for name in ("read", "noise", "weights")
    )
    job.require(
        is_same,
        expected="the same run, to the bit, when it was saved and its model evaluated on the way",
        got="another run",
        likely="saving draws random numbers or changes the run"
        if looked_at["is_training"]
        else "the model trains in the mode that it was left in: after an evaluation without dropout",
        look="`self.model.train()` before the steps; `state_dict` only reads",
    )


def _require_resumed(
    job: Job,
    arguments: dict[str, Any],
    whole: dict[str, Any],
    resumed: dict[str, Any],
    stops: list[int],
    where: str = "",
) -> None:
    lost = {
        "loaded": (
            "weights right after loading",
            "the model's weights and buffers are not restored, or not both",
        ),
        "read": ("samples", _why_others(whole, resumed, stops)),
        "numpy": (
            "noise from NumPy",
            "the state of NumPy's generator is not saved as it is, with the normal number that it holds ready, or it "
            "was drawn from after",
        ),
        "python": (
            "noise from Python's random",
            "the state of Python's generator is not saved as it is, or it was drawn from after",
        ),
    }
    job.require(
        not any(resumed["loading"]),
        expected="a state that holds all that the next step needs: loading it trains nothing",
        got=f"{max(resumed['loading'], default=0)} forward passes of the model while a state is loaded",
        likely="the steps before are trained once more: a run that is resumed after a week would take a week",
        look="`state_dict()` of the model and of the optimizer, the step, and the generators",
    )
    expected = f"a run that was stopped after step {stops} and resumed{where} to equal one that was not"
    look = "what does the next step need that this process knows and the file does not?"
    got, right = _parts(resumed), _parts(whole) | {"loaded": resumed["kept"]}
    require_same_parts(job, got, right, lost, expected=expected, said="other WHAT", look=look)
    if np.array_equal(got["weights"], right["weights"]):
        return
    # Without dropout only the optimizer is left.
    calm = arguments | {"dropout": 0.0}
    one, two = (
        _trained(job, job.learner(), calm | {"stops": some})["weights"]
        for some in ([], [s for s in stops if s])
    )
    likely = (
        "torch's generator is not saved, or it was drawn from after: dropout differs"
        if np.array_equal(one, two)
        else "the optimizer is not saved: its moments begin at zero, and the next step is another one"
    )
    job.require(False, expected=expected, got="other final weights", likely=likely, look=look)


def _why_others(whole: dict[str, Any], resumed: dict[str, Any], stops: list[int]) -> str:
    got, right = resumed["read"][:, 0], whole["read"][:, 0]
    length = min(len(got), len(right))
    at = int(np.argmax(got[:length] != right[:length])) if length else 0
    # The next samples, in an order of the run that was not stopped, only at another place of an epoch.
    following, num = got[at : at + BATCH].tolist(), len({*right})
    begins = [i for i in range(len(right) - BATCH) if right[i : i + BATCH].tolist() == following]
    moved = bool(begins) and all((begin - at) % num for begin in begins)
    if len(got) != len(right) or moved:
        return "the position in the epoch is not saved: samples are repeated or skipped"
    if begins and not any(stop % -(-num // BATCH) for stop in stops):
        return "the number of the epoch is not saved, or counted too late: one that is over comes again"
    return "the order of the epoch is not saved, and cannot be made again from seed and epoch"
