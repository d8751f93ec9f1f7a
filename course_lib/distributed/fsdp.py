"""FSDP2: parameters, gradients and optimizer states split over the processes, and checkpoints of the parts.

Each block's parameters are gathered for its forward and backward only. A checkpoint is a folder that every
process writes its part of, and that any number of processes can load (torch.distributed.checkpoint).
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

from course_lib.base import BUILDING, UserError
from course_lib.distributed.ranks import Ranks, from_main_process, silent_group, world_size


def shard(
    model: nn.Module,
    *,
    precision: str = "32-true",
    cpu_offload: bool = False,
    device: torch.device | None = None,
) -> nn.Module:
    """The model itself, its parameters split over all processes; where there is no process group, whole on `device`.

    Call it before the optimizer is made. With `"bf16-mixed"` parameters travel and compute in bfloat16 and
    gradients are summed in float32. `cpu_offload` keeps the parts in main memory until they are needed.
    `device`: where the model computes; None: where it is. One that is on the CPU is brought there block by block, and
    may be larger than the memory of the device.
    """
    device, group = device or next(model.parameters()).device, silent_group()
    if group is None and not (dist.is_available() and dist.is_initialized()):
        return model.to(device)
    kind = device.type
    if group is None:
        mesh = init_device_mesh(kind, (world_size(),))
    else:  # by a name of its own: torch remembers of equal meshes how they compute, and with which group
        mesh = DeviceMesh.from_group(group, kind, mesh_dim_names=(f"rehearsal {group.group_name}",))
    options: dict[str, Any] = {"mesh": mesh}
    if precision == "bf16-mixed":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if cpu_offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=kind != "cpu")
    layers = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    for block in (block for layer in reversed(layers) for block in layer):  # inner ones first
        fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def full_state_dict(model: nn.Module) -> dict[str, Any]:
    """All weights, on the CPU of the first process; nothing on the others. All processes call it."""
    options = dcp_state.StateDictOptions(full_state_dict=True, cpu_offload=True)
    return dcp_state.get_model_state_dict(model, options=options)


def save_sharded(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the new checkpoint `folder`, each process its part; it gets its name when it is whole."""
    building = folder.with_name(f"{BUILDING}{folder.name}")
    names = ("model", "optimizer")
    parts = dict(zip(names, dcp_state.get_state_dict(model, optimizer), strict=True))
    with _alone_if_need_be():
        dcp.save(parts, checkpoint_id=building, no_dist=world_size() == 1)
    if Ranks.from_environment().is_main_process:
        building.rename(folder)


def load_sharded(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint back, on as many processes as wrote it or another number.

    Unlike `.pt` checkpoints it holds a pickled index: load your own only. Raises UserError when it cannot be
    read.
    """
    weights, moments = dcp_state.get_state_dict(model, optimizer)
    try:
        parts = {"model": weights, "optimizer": moments}
        with _alone_if_need_be():
            dcp.load(parts, checkpoint_id=folder, no_dist=world_size() == 1)
    except (dcp.CheckpointException, OSError, RuntimeError) as error:
        raise UserError(f"cannot read the checkpoint folder {folder} ({type(error).__name__})") from None
    dcp_state.set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)


def load_whole_weights(folder: Path, model: nn.Module) -> None:
    """The weights alone of a checkpoint, all of them into `model`, which is not split. Errors as `load_sharded`."""
    parts = {"model": model.state_dict()}
    try:
        with _alone_if_need_be():
            dcp.load(parts, checkpoint_id=folder, no_dist=True)
    except (dcp.CheckpointException, OSError, RuntimeError) as error:
        raise UserError(f"cannot read the checkpoint folder {folder} ({type(error).__name__})") from None
    model.load_state_dict(parts["model"])


@contextmanager
def _alone_if_need_be() -> Iterator[None]:
    """torch warns that there is one process only, which `no_dist` has told it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


class WholeWeights:
    """The model as a part of a checkpoint for use anywhere: all weights, put together."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def state_dict(self) -> dict[str, Any]:
        return full_state_dict(self.model)


class ShardedParts:
    """Model and optimizer as a part of a checkpoint to go on from: it names the folder that holds them.

    The newest `2 + keep` folders stay: until a checkpoint file has its name, the one before is in force.
    """

    def __init__(
        self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, *, keep: int
    ) -> None:
        self.folder, self.model, self.optimizer, self.keep = folder, model, optimizer, keep

    def state_dict(self) -> dict[str, str]:
        folders = sorted(self.folder.glob("sharded-*"), key=lambda folder: folder.stat().st_mtime_ns)
        last = max((int(folder.name.rpartition("-")[2]) for folder in folders), default=0)
        name = from_main_process(f"sharded-{last + 1:08d}")
        save_sharded(self.folder / name, self.model, self.optimizer)
        if Ranks.from_environment().is_main_process:
            for old in folders[: -1 - self.keep]:
                shutil.rmtree(old)
        return {"folder": name}

    def load_state_dict(self, state: Mapping[str, str]) -> None:
        load_sharded(self.folder / state["folder"], self.model, self.optimizer)
        # Again the newest: after a kill, a later one may be there whose checkpoint file was never written.
        (self.folder / state["folder"]).touch()
