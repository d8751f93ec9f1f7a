"""Number formats of a run: what was asked for, what it comes to on this machine, and why.

All three keep the weights in fp32 (Micikevicius et al., 2018); "mixed" computes the matrix products in 16 bits.
"""

from __future__ import annotations

import json
import platform
import time
from contextlib import AbstractContextManager, nullcontext
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
        return _NO_AUTOCAST if self.dtype == torch.float32 else torch.autocast(self.device_type, self.dtype)


FULL_PRECISION = Precision("32-true", "asked for")


def resolve_precision(requested: str, device: torch.device, *, width: int = 64) -> Precision:
    """The precision that `requested` ("auto" or a name of `DTYPES`) comes to on `device`, with the reason.

    "auto" takes bf16 on GPUs that compute in it and fp16 on older ones. On a CPU with bf16 units it times one
    transformer layer `width` wide both ways, as small layers lose more to the conversions than they gain: about a
    second, once on a machine; the cache folder keeps the result, so that equal runs resolve alike. The random state
    is kept. Raises UserError for an unknown name.
    """
    if requested != "auto" and requested not in DTYPES:
        raise UserError(f"there is no precision {requested!r}: take auto or one of {', '.join(DTYPES)}")
    name, reason = _automatic(device, width) if requested == "auto" else (requested, "asked for")
    scaler = torch.amp.GradScaler(device.type) if name == "16-mixed" else None
    return Precision(name, reason, DTYPES[name], device.type, scaler)


def _automatic(device: torch.device, width: int) -> tuple[str, str]:
    if device.type == "cuda":
        gpu = torch.cuda.get_device_name(device)
        if torch.cuda.is_bf16_supported(including_emulation=False):
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


def bf16_units() -> list[str]:
    """What torch finds in this CPU for bf16 products, such as `amx_bf16`; older versions of torch find nothing."""
    found: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return sorted(name for name, has in found.items() if has and "bf16" in name)


def known_gain(width: int) -> float:
    """`layer_gain`, measured once on a machine: the cache folder keeps it. 0 on a CPU without bf16 units."""
    if not bf16_units():
        return 0.0
    key = f"{width} wide, torch {torch.__version__}, {platform.node()}"
    path = cache_dir() / f"layer-gain-{digest(key)[:20]}.json"
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
