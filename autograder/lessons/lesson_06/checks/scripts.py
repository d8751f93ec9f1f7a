"""The check of exercise 6.3: a script that torchrun starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import CheckFailed, Job
from autograder.lessons.checking import are_equal, name_the_mistake, require_equal
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import (
    FROM_IDS,
    HIDDEN,
    SECONDS,
)
from autograder.lessons.lesson_06.checks.devices import require_devices
from autograder.lessons.lesson_06.checks.script_mistakes import (
    ALMOST,
    MISTAKES,
    NEAR,
    UNKNOWN,
    too_few_parts,
)
from autograder.lessons.lesson_06.checks.script_work import (
    require_shared_rows,
    require_split_work,
    told_of_ranks,
)

SAME = 5e-5  # of all that the weights move: what another order of sums may change
# Local ranks: on two machines of one process each both are 0; or there are two on the first machine, one on the second.
ONE_MACHINE, TWO_MACHINES, UNEVEN_MACHINES = [0, 1, 2], [0, 0], [0, 1, 0]


def check_script(job: Job) -> None:
    """6.3: weights of one process on every rank, one checkpoint, own dropout; at last a real torchrun."""
    job.talks = True
    job.progress("Running the script's function on ranks that are watched", 0.1)
    require_devices(job)
    _require_training(job, "one-machine", ONE_MACHINE, "loud")
    _require_training(job, "two-machines", TWO_MACHINES)
    _require_own_dropout(job)
    job.progress("Starting torchrun with two processes: up to ten seconds", 0.5)
    _require_launch(job)


def _draw(job: Job) -> dict[str, Any]:
    """A job of its own: seed, rows of each batch, and what `job.pt` sets. Of 3 or 4 rows one more on a rank shows."""
    rng = job.rng
    rows = rng.permutation([4, 3, 13, *rng.integers(4, 12, size=int(rng.integers(0, 3)))]).tolist()
    model = {"d_model": 2 * int(rng.integers(4, 12)), "num_layers": int(rng.integers(1, 3))}
    settings = {"learning_rate": round(float(rng.uniform(0.2, 0.5)), 3), "model": model}
    return {"seed": job.seed() % 10**6, "rows": rows, "settings": settings}


def _require_training(job: Job, name: str, local_ranks: list[int], kind: str = "") -> None:
    arguments = _draw(job) | {"kind": kind}
    try:
        answer = job.learner().call(
            "watched_script", seconds=SECONDS, name=name, local_ranks=local_ranks, **arguments
        )
    except CheckFailed as error:
        raise too_few_parts(job, error) or error from None
    ranks = told_of_ranks(job, answer)
    twin = job.twin(baselines.nothing(job.entry))
    expected = twin.call("script_alone", **arguments)
    way = float(np.linalg.norm(expected - twin.call("script_alone", mistake="no step", **arguments)))
    nodes = (
        " on two machines of one process each"
        if local_ranks == TWO_MACHINES
        else f" of {len(ranks)} processes"
    )
    require_shared_rows(job, ranks, arguments["rows"], nodes, is_two_machines=local_ranks == TWO_MACHINES)
    for rank, seen in enumerate(ranks):
        _require_plain(job, seen, f"rank {rank}{nodes}")
    for rank, seen in enumerate(ranks):
        require_equal(
            job,
            seen["trained"]["row"],
            expected,
            dtype="float32",
            what=f"weights at the end on rank {rank}{nodes}",
            likely=_why(job, ranks, expected, arguments, local_ranks)
            or (ALMOST if np.linalg.norm(ranks[0]["trained"]["row"] - expected) <= NEAR * way else UNKNOWN),
            look="for one batch of 3: which samples has each rank, and what is its loss divided by?",
        )
        away = float(np.linalg.norm(seen["trained"]["row"] - expected)) / way
        job.require(
            away <= SAME,
            expected=f"steps as in one process, within {SAME:g} of all that the weights move",
            got=f"weights that are {away:.2g} of it away",
            likely=ALMOST,
            look="`torch.optim.SGD` with the learning rate alone, and gradients in float32",
        )
    saves = [seen["num_saves"] for seen in ranks]
    job.require(
        sum(saves[1:]) == 0,
        expected="a checkpoint that rank 0 writes, and nobody else",
        got=f"{', '.join(f'rank {rank}: {number}' for rank, number in enumerate(saves))} saves{nodes}",
        likely="every rank writes the checkpoint, into the same file at the same time"
        if local_ranks != TWO_MACHINES
        else "every rank with *local* rank 0 writes the checkpoint: on two machines there are two of them",
        look="`if rank == 0:`, and a barrier that all ranks reach",
    )
    require_split_work(job, ranks, arguments, nodes)
    _require_checkpoint(job, answer["checkpoint"], expected, ranks[0]["trained"]["row"])
    job.require(
        not any(seen["group_is_up"] for seen in ranks),
        expected="no process group any more when `main` has returned",
        got="one that is still up",
        likely="the process group is set up, and never taken down"
        if all(seen["group_is_up"] for seen in ranks)
        else "the process group is taken down on some ranks alone, as by rank 0 after it has saved",
        look="`dist.destroy_process_group()` on every rank, when all is done",
    )
    for seen, local_rank in zip(ranks, local_ranks, strict=True):
        job.require(
            not seen["asked_for"] or local_rank in seen["asked_for"],
            expected=f"`main` to choose the device of local rank {local_rank}{nodes}",
            got=f"choose_device({seen['asked_for'][0]}, …)" if seen["asked_for"] else "-",
            likely="the device goes by RANK: the second machine has no GPU of that number"
            if local_ranks == TWO_MACHINES
            else "every rank takes the same device",
            look="`LOCAL_RANK` counts the processes of one machine, as its GPUs are counted",
        )


def _require_plain(job: Job, seen: dict[str, Any], who: str) -> None:
    trained = seen["trained"]
    job.require(
        trained is not None and bool(trained["has_same_names"]),
        expected=f"`main` to return the trained model on {who}, unwrapped",
        got=f"a value of type {seen['returned']}",
        likely="the wrapper is returned: its weights are named `module.` and so on"
        if seen["returned"] == "DistributedDataParallel"
        else "nothing is returned, or another model than the job's",
        look="DDP keeps the plain model as `ddp.module`",
    )


def _why(
    job: Job,
    ranks: list[dict[str, Any]],
    expected: np.ndarray,
    arguments: dict[str, Any],
    local_ranks: list[int],
) -> str:
    got = ranks[0]["trained"]["row"]
    if all(are_equal(seen["trained"]["row"], expected, "float32") for seen in ranks):
        return ""
    if not all(are_equal(seen["trained"]["row"], got, "float32") for seen in ranks):
        return "the ranks train different models: gradients are not exchanged, or the start is not the same"
    if local_ranks == TWO_MACHINES:
        return "the samples are dealt out by LOCAL_RANK or LOCAL_WORLD_SIZE: those are of one machine, and here are two"
    if all(seen["is_from_ids"] for seen in ranks):
        return FROM_IDS
    twin = job.twin(baselines.nothing(job.entry))
    mistake = name_the_mistake(
        MISTAKES,
        twin=lambda name: twin.call("script_alone", mistake=name, world_size=len(ranks), **arguments),
        is_same=lambda wrong: are_equal(got, wrong, "float32"),
    )
    return mistake


def _require_checkpoint(
    job: Job, found: dict[str, Any] | None, expected: np.ndarray, returned: np.ndarray
) -> None:
    job.require(
        found is not None,
        expected="the file last.pt in the folder",
        got="none",
        likely="nobody saves, or under another name",
        look="`folder / 'last.pt'`",
    )
    assert found is not None
    job.require(
        found["type"] == "dict" and bool(found["has_same_names"]),
        expected="a state dict with the names of the plain model, such as token_embedding.weight",
        got=str(found["first_name"]) or f"a {found['type']} without names",
        likely="the wrapper's state dict is saved: its names begin with `module.`, and no plain model can load it"
        if str(found["first_name"]).startswith("module.")
        else "something else than the plain model's state dict is saved: the model itself, or a dict around it",
        look="`model.state_dict()` of the plain model, alone",
    )
    job.require(
        found["dtypes"] == ["torch.float32"] and are_equal(found["row"], expected, "float32"),
        expected="the trained weights in last.pt",
        got="others" if found["dtypes"] == ["torch.float32"] else f"{', '.join(found['dtypes'])}",
        likely="saved before the training, half written, or in another dtype",
        look="save after the last step",
    )
    job.require(
        np.array_equal(found["row"], returned),
        expected="in last.pt the weights that `main` returns, to the last bit",
        got="almost those",
        likely="the weights are rounded on their way into the file, or saved before the last step",
        look="`model.state_dict()` as it is after the last step",
    )


def _require_own_dropout(job: Job) -> None:
    arguments = _draw(job) | {"seed": 0}  # which a product leaves 0 on every rank
    answer = job.learner().call(
        "watched_script",
        seconds=SECONDS,
        name="dropout",
        dropout=0.5,
        local_ranks=UNEVEN_MACHINES,
        kind="sick",
        **arguments,
    )
    ranks = told_of_ranks(job, answer)
    states = [seen["random_states"] for seen in ranks]
    job.require(
        all(len(set(of_ranks)) == len(of_ranks) for of_ranks in zip(*states, strict=False)),
        expected="another random state on each rank in every step, also on two machines, of two processes and one",
        got="the same on some",
        likely="the seed is equal for dropout too, or depends on `LOCAL_RANK`: ranks draw the same masks, for other "
        "samples",
        look="one seed for the weights; then, after the model is made, another one that depends on `RANK`",
    )
    job.require(
        not any(seen["num_without_draws"] for seen in ranks),
        expected="dropout in every forward: the job's `model` asks for it",
        got="forwards that draw no mask, or drop another share",
        likely="the model is another one than the job's, or its dropout is switched off or changed",
        look="`ModelConfig(**job['model'])`, and training mode for the whole model",
    )
    job.require(
        all(len(set(of_rank)) == len(of_rank) for of_rank in states),
        expected="another random state in every step",
        got="the same again",
        likely="the seed of dropout is set anew before each step: every step has the same masks",
        look="one seed before the loop is enough",
    )
    drawn = [state for of_rank in states for state in of_rank]
    job.require(
        len(set(drawn)) == len(drawn),
        expected="no random state twice, on whatever rank and in whatever step",
        got=f"{len(drawn) - len(set(drawn))} that another rank has had in another step",
        likely="the numbers of rank and step are added: the next rank's masks are those of this one a step later",
        look="one seed for each rank, before the loop",
    )
    job.require(
        all(np.isnan(seen["trained"]["row"]).any() for seen in ranks if seen["trained"]),
        expected="weights that are NaN after a step in which a row has the loss NaN, as in one process",
        got="numbers",
        likely=HIDDEN,
        look="whoever trains must see that the model has diverged: make the step of the whole batch",
    )
    job.require(
        answer["checkpoint"]["has_same_names"],
        expected="a new last.pt where an earlier run has left one",
        got="the old one",
        likely="a file that is there already is kept",
        look="rank 0 writes it, whatever was there",
    )
    require_split_work(job, ranks, arguments, " that drop words")


def _require_launch(job: Job) -> None:
    arguments = _draw(job)
    answer = job.learner().call("launched_script", seconds=180.0, name="launched", **arguments)
    job.require(
        answer["status"] == 0 and len(answer["weights"]) == 2,
        expected="`torchrun --nproc-per-node 2 train.py FOLDER` to end with status 0 after `main` has run on both",
        got=f"status {answer['status']}: {answer['said'] or 'main did not run on both ranks'}",
        likely="the cell's last two lines are gone, or something works in a forked process alone",
        look="run it yourself with `launch(main, 2, folder)` and read the error of the first rank",
    )
    expected = job.twin(baselines.nothing(job.entry)).call("script_alone", **arguments)
    for rank, weights in enumerate(answer["weights"]):
        require_equal(
            job,
            weights,
            expected,
            dtype="float32",
            what=f"weights of rank {rank} under torchrun",
            likely="the script does something else when torchrun starts it",
            look="what differs there: environment, folder, arguments",
        )
    total = sum(arguments["rows"])
    job.require(
        sum(answer["rows"]) == total and min(answer["rows"]) > 0,
        expected=f"{total} rows through the model under torchrun, on both ranks together",
        got=" and ".join(map(str, answer["rows"])),
        likely="the script does something else when torchrun starts it: each rank computes the whole batch"
        if min(answer["rows"]) >= total
        else "the script does something else when torchrun starts it: rows are not shared as they should be",
        look="what differs there: `__name__`, environment, folder, arguments",
    )
    _require_checkpoint(job, answer["checkpoint"], expected, answer["weights"][0])
    job.counts["processes_launched"] = 2
