"""Number formats of a run: what was asked for, what it comes to on this machine, and why.

All keep the weights in fp32 (Micikevicius et al., 2018); "mixed" computes the matrix products with fewer bits: 16, or
the 19 that TF32 units read of an fp32 number. TF32 is a choice and no default: it keeps fp32's range and rounds to 10
bits of fraction, and data sheets of GPUs that have it give bf16 twice its speed, at half the memory.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from course_lib.base import UserError, atomic_write_text, cache_dir, digest
from course_lib.training.registry import PRECISIONS

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, dtype) for name, dtype in PRECISIONS.items()}
MIN_LAYER_GAIN = 1.15
"""Embeddings, loss and optimizer gain nothing, and small batches less than the probe's: a layer must gain clearly."""
PROBE_ROWS, PROBE_LENGTH, MAX_PROBE_WIDTH = 32, 64, 512
_NO_AUTOCAST: AbstractContextManager[Any] = nullcontext()


@dataclass(frozen=True)
class Precision:
    """`name` as in a config, why it was chosen, and what a training step needs of it."""

    name: str
    reason: str
    dtype: torch.dtype = torch.float32
    device_type: str = "cpu"
    scaler: torch.amp.GradScaler | None = field(default=None, compare=False, repr=False)
    """For `16-mixed`: lifts small gradients above fp16's smallest number, skips a step whose gradient overflowed.
    Its `state_dict` belongs in a checkpoint. Skipping costs no sync with a fused optimizer, one with others."""

    @property
    def width_multiple(self) -> int:
        """What batches should be a multiple of in width: 16-bit units compute in tiles, and oneDNN compiles a kernel
        of about a megabyte per shape and keeps 1,024 of them, which costs more than the padding."""
        return 1 if self.dtype == torch.float32 else 8

    def autocast(self) -> AbstractContextManager[Any]:
        """For the forward pass and the loss. In `32-true` one shared context that does nothing."""
        return (
            self.products() if self.dtype == torch.float32 else torch.autocast(self.device_type, self.dtype)
        )

    def casts_once(self) -> AbstractContextManager[Any]:
        """For the micro-batches of an update. Autocast keeps its copies of the weights in 16 bits until the outermost
        context ends: here that is one which casts nothing itself, so that it may stand around backward, too."""
        is_cast = self.dtype != torch.float32
        return torch.autocast(self.device_type, self.dtype, enabled=False) if is_cast else _NO_AUTOCAST

    def products(self) -> AbstractContextManager[Any]:
        """For the backward pass: TF32 is a switch of the process, where autocast has noted what backward needs."""
        return _tf32() if self.name == "tf32-mixed" else _NO_AUTOCAST


FULL_PRECISION = Precision("32-true", "asked for")


def resolve_precision(requested: str, device: torch.device, *, width: int = 64) -> Precision:
    """The precision that `requested` ("auto" or a name of `DTYPES`) comes to on `device`, with the reason.

    "auto" takes bf16 on GPUs that compute in it and fp16 on older ones. On a CPU with bf16 units it times one
    transformer layer `width` wide both ways, as small layers lose more to the conversions than they gain: about a
    second, once on a machine; the cache folder keeps the result, so that equal runs resolve alike. The random state
    is kept. Raises UserError for an unknown name, and for TF32 where there are no units for it.
    """
    if requested != "auto" and requested not in DTYPES:
        raise UserError(f"there is no precision {requested!r}: take auto or one of {', '.join(DTYPES)}")
    if requested == "tf32-mixed" and not has_tf32_units(device):
        raise UserError(
            f"tf32-mixed needs an NVIDIA GPU of compute capability 8.0 or later, here is {device}: take auto or 32-true"
        )
    name, reason = _automatic(device, width) if requested == "auto" else (requested, "asked for")
    if name == "32-true" and has_tf32_units(device):
        switched = "torch is set to TF32" if computes_in_tf32(device) else "tf32-mixed would compute in TF32"
        reason = f"{reason}; {switched}"
    scaler = torch.amp.GradScaler(device.type) if name == "16-mixed" else None
    return Precision(name, reason, DTYPES[name], device.type, scaler)


def _automatic(device: torch.device, width: int) -> tuple[str, str]:
    if device.type == "cuda":
        gpu = torch.cuda.get_device_name(device)
        if has_bf16_units(device):
            return "bf16-mixed", f"{gpu} computes in bf16: fp32's range, so no loss scaling"
        return "16-mixed", f"{gpu} has no bf16 units: fp16 with loss scaling"
    if device.type != "cpu":
        return "32-true", f"mixed precision is tried on CUDA and CPUs alone; this is {device.type}"
    units = bf16_units()
    if not units:
        return "32-true", "no bf16 units found in this CPU"
    gain = known_gain(width)
    found = f"{', '.join(units)}; a layer {width} wide ran {gain:.2f} × as fast in bf16 as in fp32"
    if gain < MIN_LAYER_GAIN:
        return "32-true", f"{found}, and it takes {MIN_LAYER_GAIN} for whole steps to gain"
    return "bf16-mixed", found


def has_bf16_units(gpu: torch.device) -> bool:
    """Whether a GPU computes in bf16 itself: NVIDIA's since Ampere. torch emulates it on older ones, slowly."""
    return bool(torch.version.hip) or torch.cuda.get_device_capability(gpu)[0] >= 8


def has_tf32_units(device: torch.device) -> bool:
    return device.type == "cuda" and not torch.version.hip and has_bf16_units(device)


def computes_in_tf32(device: torch.device) -> bool:
    """Whether products of fp32 tensors on `device` are made in TF32 now, as torch is set."""
    return has_tf32_units(device) and torch.backends.cuda.matmul.allow_tf32


@contextmanager
def _tf32() -> Iterator[None]:
    switch = torch.backends.cuda.matmul
    before, switch.allow_tf32 = switch.allow_tf32, True
    try:
        yield
    finally:
        switch.allow_tf32 = before


def bf16_units() -> list[str]:
    """What torch finds in this CPU for bf16 products, such as `amx_bf16`; older versions of torch find nothing."""
    found: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return sorted(name for name, has in found.items() if has and "bf16" in name)


def known_gain(width: int) -> float:
    """`layer_gain`, measured once on a machine: the cache folder keeps it, where there is one. 0 on a CPU without bf16
    units."""
    if not bf16_units():
        return 0.0
    key = f"{width} wide, torch {torch.__version__}, {platform.node()}"
    try:
        path = cache_dir() / f"layer-gain-{digest(key)[:20]}.json"
    except UserError:  # it cannot be made, or where it would be is not known: a run can do without it
        return layer_gain(width)
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["gain"])
    except (OSError, ValueError, KeyError, TypeError):
        gain = layer_gain(width)
        atomic_write_text(path, json.dumps({"gain": gain, "of": key}))
        return gain


def layer_gain(width: int) -> float:
    """CPU time of one block of our models, forward and backward, in fp32 / in bf16 by autocast.

    Interleaved, the best of five each after a warm-up. CPU time, for another busy program stretches the clock's.
    """
    from course_lib.models import EncoderBlock, ModelConfig

    width = max(8, min(width, MAX_PROBE_WIDTH) // 8 * 8)  # beyond the limit the gain only grows
    config = ModelConfig(
        vocab_size=1, num_classes=1, max_length=PROBE_LENGTH, d_model=width, num_heads=max(1, width // 64)
    )
    seconds: dict[torch.dtype, list[float]] = {torch.float32: [], torch.bfloat16: []}
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for a core would be timed too
    with torch.random.fork_rng(devices=[]):
        block, hidden = EncoderBlock(config), torch.randn(PROBE_ROWS, PROBE_LENGTH, width)
        key_mask = torch.ones(PROBE_ROWS, 1, 1, PROBE_LENGTH, dtype=torch.bool)
        for dtype in 7 * list(seconds):
            start = time.process_time()
            with Precision("probe", "", dtype).autocast():
                total = block(hidden, key_mask).float().square().mean()
            total.backward()
            seconds[dtype].append(time.process_time() - start)
    torch.set_num_threads(num_threads)
    return min(seconds[torch.float32][2:]) / min(seconds[torch.bfloat16][2:])
