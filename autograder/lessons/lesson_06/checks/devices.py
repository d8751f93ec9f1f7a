"""What the check of exercise 6.3 asks of `choose_device`."""

from __future__ import annotations

from autograder.engine import Job

DEVICES = {
    (0, 0): "cpu",
    (3, 0): "cpu",
    (0, 1): "cuda:0",
    (0, 4): "cuda:0",
    (3, 4): "cuda:3",
    (1, 2): "cuda:1",
}
NO_DEVICE = ((2, 2), (1, 1), (5, 2))


def require_devices(job: Job) -> None:
    """The CPU where there is no GPU, else the GPU of the local rank; ValueError where there is none left."""
    cases = [*DEVICES, *NO_DEVICE]
    found = job.learner().call("chosen_devices", cases=[list(case) for case in cases])
    job.require(
        found is not None,
        expected="a function `choose_device` in the cell, beside `main`",
        got="none",
        likely="it was deleted or has another name",
        look="the cell came with its first lines",
    )
    for (local_rank, num_gpus), got in zip(cases, found, strict=True):
        call, expected = f"choose_device({local_rank}, {num_gpus})", DEVICES.get((local_rank, num_gpus))
        if expected is None:
            job.require(
                got["error"] == "ValueError",
                expected=f"{call} to raise ValueError: a process more than there are GPUs",
                got=f"{got['error']}: {got['said']}" if got["error"] else got["said"],
                likely="another error than ValueError is raised"
                if got["error"]
                else "more processes than GPUs are wrapped around or pile up on one",
                look="a clear error at the start is cheaper than an odd one later",
            )
            continue
        job.require(
            got["said"] == expected or (got["said"], expected) == ("cuda", "cuda:0"),
            expected=f"{call} = {expected}",
            got=f"{got['error']} {got['said']}".strip(),
            likely="device 0 on every rank: all processes of a machine would share one GPU"
            if got["said"] in ("cuda", "cuda:0")
            else "the device does not follow the local rank, or a CPU is forgotten",
            look="the local rank counts the processes of one machine, as its GPUs are counted",
        )
        job.require(
            got["type"] == "device",
            expected=f"{call} to be a torch.device",
            got=f"a {got['type']}",
            likely="the name of a device is returned, not the device",
            look='`torch.device("cuda", 3)` makes one; its `.type` tells "cuda" from "cpu"',
        )
