"""Several processes that train one model: who is who, and what they add up.

`torchrun` starts the processes and sets the environment that `setup` reads. With one process everything here
is the identity.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from course_lib.base import UserError

T = TypeVar("T")

TIMEOUT_VARIABLE = "COURSE_LIB_TIMEOUT_SECONDS"
"""How long a process waits for the others inside a step before it gives up. A killed process is noticed at
once; this bounds the wait for one whose machine went away without a word."""
_TIMEOUT_SECONDS = 600.0
_RANK_SEED_STRIDE = 1_000_003


@dataclass(frozen=True)
class Ranks:
    """Which of the processes this is; `local_rank` counts within one machine."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @property
    def is_main_process(self) -> bool:
        return self.rank == 0

    @classmethod
    def from_environment(cls) -> Ranks:
        """As torchrun says; the only process when nobody says anything."""
        says = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"} | os.environ
        return cls(int(says["RANK"]), int(says["LOCAL_RANK"]), int(says["WORLD_SIZE"]))

    def device(self, requested: str) -> str:
        """The device of this process: with several of them `"cuda"` becomes the one of its local rank.

        Raises UserError when there are more processes than GPUs, or one device is named for all.
        """
        if self.world_size == 1:
            return requested
        num_gpus = torch.cuda.device_count()
        if requested == "cpu" or (requested == "auto" and not num_gpus):
            return "cpu"
        if requested not in ("auto", "cuda"):
            raise UserError(
                f"device={requested} is one device for {self.world_size} processes: use cuda or cpu"
            )
        if self.local_rank >= num_gpus:
            raise UserError(
                f"{num_gpus} GPUs and a process of local rank {self.local_rank}: start one per GPU"
            )
        return f"cuda:{self.local_rank}"

    def seed(self, seed: int) -> int:
        """A seed of its own for dropout on each process; shuffling takes the same one on all."""
        return (seed + _RANK_SEED_STRIDE * self.rank) % 2**32


def is_elastic() -> bool:
    """Whether torchrun may start this job again by itself (`--max-restarts`): then a run that is there
    already is one to go on with."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def setup(device: str = "auto") -> Ranks:
    """Join the other processes of this job; alone, do nothing. `cleanup` leaves.

    NCCL carries CUDA tensors and gloo the rest. Raises UserError as `Ranks.device` does.
    """
    ranks = Ranks.from_environment()
    if ranks.world_size == 1:
        return ranks
    chosen = torch.device(ranks.device(device))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    seconds = float(os.environ.get(TIMEOUT_VARIABLE, _TIMEOUT_SECONDS))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo", timeout=timedelta(seconds=seconds)
    )
    return ranks


def cleanup() -> None:
    """Leave the process group, when there is one."""
    if world_size() > 1:
        gc.collect()  # a DDP wrapper left in a cycle keeps the group's threads, and the process aborts as it exits
        dist.destroy_process_group()


def quiet_other_ranks() -> None:
    """Only the first process speaks: what the others print goes nowhere. `sys.__stderr__` stays, for a fault
    that only one process has."""
    if not Ranks.from_environment().is_main_process:
        sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def is_lost_peer(error: BaseException) -> bool:
    """Whether `error` says that another process of the job went away."""
    is_gloo = isinstance(error, RuntimeError) and "gloo" in str(error).lower()
    return Ranks.from_environment().world_size > 1 and (is_gloo or isinstance(error, dist.DistError))


def world_size() -> int:
    """Number of processes that train together; 1 without a process group, and in a `rehearsal`."""
    is_alone = _silent_group is not None or not (dist.is_available() and dist.is_initialized())
    return 1 if is_alone else dist.get_world_size()


_silent_group: dist.ProcessGroup | None = None


def silent_group() -> dist.ProcessGroup | None:
    """In a `rehearsal` of several processes the group that moves nothing; else None."""
    return _silent_group


@contextlib.contextmanager
def rehearsal() -> Iterator[None]:
    """Inside, this process waits for no other, so that a step may fail here and not elsewhere: sums are its own, and
    what `wrap_ddp` and `shard` make exchanges nothing. That has the parts and buffers of the real thing and takes its
    memory; what it computes means nothing. All processes must enter."""
    global _silent_group
    if world_size() == 1:
        yield
        return
    _silent_group = group = dist.new_group(backend="fake")  # torch's own, for trials on one process
    try:
        yield
    finally:
        _silent_group = None
        dist.destroy_process_group(group)


def _keep(_, bucket):  # type: ignore[no-untyped-def]  # DDP takes no annotation as a string
    """What a DDP does with gradients in a rehearsal: nothing."""
    kept = torch.futures.Future[Tensor]()
    kept.set_result(bucket.buffer())
    return kept


def sum_across_ranks(tensor: Tensor) -> Tensor:
    """Sum over all processes; the tensor itself when there is one. All processes must call it."""
    if world_size() > 1:
        tensor = tensor.clone()
        dist.all_reduce(tensor)
    return tensor


def gather_objects(value: T) -> list[T]:
    """The values of all processes in order of rank, on each of them. They travel pickled: keep them small."""
    values = [value] * world_size()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def from_main_process(value: T) -> T:
    """The first process's value, on all of them: for what a clock or a signal decides, which else would be
    decided differently here and there, and the job would hang. Costs a sync."""
    values = [value]
    if world_size() > 1:
        dist.broadcast_object_list(values, src=0)
    return values[0]


@contextlib.contextmanager
def main_process_first(ranks: Ranks) -> Iterator[None]:
    """The first process runs the block while the others wait; then they do, and find what it has built."""
    if ranks.world_size == 1:
        yield
        return
    # A group of its own, whose timeout is that of building a large store and not that of a step.
    group = dist.new_group(backend="gloo", timeout=timedelta(days=1))
    if not ranks.is_main_process:
        dist.barrier(group=group)
    yield  # not in `finally`: a first process that failed must not send the others in
    if ranks.is_main_process:
        dist.barrier(group=group)


def wrap_ddp(model: nn.Module) -> nn.Module:
    """The model in DistributedDataParallel, which averages gradients while backward still runs; the model
    itself when there is one process, or FSDP2 sees to it. `unwrap` takes it out again.

    Buffers are the first process's at each forward, as DDP has it, where the model has `moving_buffers`."""
    group = silent_group()
    is_alone = world_size() == 1 and group is None
    if is_alone or hasattr(model, "set_requires_gradient_sync"):
        return model
    # Gradients are views of the buckets that travel: no copy beside them.
    wrapped = DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)
    # All buffers have just been sent. Those that nothing changes need not travel again before each forward.
    wrapped.broadcast_buffers = bool(moving_buffers(model))
    if group is not None:
        wrapped.register_comm_hook(None, _keep)
    return wrapped


def moving_buffers(model: nn.Module) -> list[Tensor]:
    """The buffers that training may change, such as the averages of a batch norm.

    All that are saved with the model, but those of modules that say `has_constant_buffers`. What changes and is not
    saved would be lost at a resume: such buffers are taken for constants, which the model makes itself.
    """
    return [
        buffer
        for module in model.modules()
        if not getattr(module, "has_constant_buffers", False)
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    ]


def share_buffers(model: nn.Module) -> None:
    """Give all processes the `moving_buffers` of the first one, which are saved: between forwards each has its own."""
    if world_size() > 1:
        for buffer in moving_buffers(model):
            dist.broadcast(buffer, src=0)


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside DistributedDataParallel: for saving, and for evaluation, where ranks may differ in
    their number of batches."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def whole(tensor: Any) -> Tensor:
    """A tensor that FSDP2 has split over processes, put together; another one as it is. All must call it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def device_of(model: nn.Module) -> torch.device:
    """Where the model computes, and its batches belong: where its parameters are, or with `cpu_offload` of FSDP2, where
    they rest elsewhere, the device that they are brought to."""
    parameter: Any = next(model.parameters())
    mesh = getattr(parameter, "device_mesh", None)
    if mesh is None or mesh.device_type == parameter.device.type:
        return parameter.device
    return torch.device(mesh.device_type, torch.get_device_module(mesh.device_type).current_device())


def no_sync(model: Any, *, is_last: bool) -> AbstractContextManager[Any]:
    """Around forward and backward of a micro-batch: gradients cross processes only in the last one of an
    update, once for all. Nothing to do for a model on one process."""
    if not is_last and isinstance(model, DistributedDataParallel):
        return model.no_sync()
    sync = contextlib.ExitStack()
    if not is_last and hasattr(model, "set_requires_gradient_sync"):  # a model under FSDP2
        model.set_requires_gradient_sync(False)
        sync.callback(model.set_requires_gradient_sync, True)  # after an error too
    return sync
