"""Which kernels compute attention: named by the profiler, in a step forward and backward of our models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from course_lib import make_optimizer, resolve_precision, train_step
from course_lib.training import has_bf16_units, to_device
from tests.benchmarks.gpu.lines import Found, Line, NotHere
from tests.benchmarks.gpu.setting import Setting, small_model, texts
from tests.benchmarks.gpu.traces import interval, merged, on_device, operators, profiled, total

TASKS = {"classification": "padding masked", "language-modelling": "causal"}
PRECISIONS = ("bf16-mixed", "16-mixed", "32-true")
_CHOSEN = re.compile(r"^aten::_scaled_dot_product_(?P<kind>\w+?)_attention(_for_cpu)?(?P<back>_backward)?$")
_KERNELS = re.compile(r"flash|fmha|sdpa|attention", re.IGNORECASE)
_PLAIN = "aten::_scaled_dot_product_attention_math"


def lines(setting: Setting) -> Iterator[Line]:
    for task, kind in TASKS.items():
        for precision in PRECISIONS:
            yield Line(
                f"{kind}, {precision}",
                "a fused kernel forward and backward, no T × T matrix",
                partial(_kernels, setting, task, precision),
            )


def _kernels(setting: Setting, task: str, name: str) -> Found:
    if name == "bf16-mixed" and setting.is_cuda and not has_bf16_units(setting.device):
        raise NotHere("needs a GPU that computes in bf16")
    is_language = task == "language-modelling"
    model = small_model(setting.device, task=task, d_model=256, num_heads=4, max_length=256)
    rows, width = (2, 32) if setting.is_quick else (8, 256)
    batch = to_device(texts(1, rows, width, is_language=is_language)[0], setting.device)
    optimizer, precision = make_optimizer(model), resolve_precision(name, setting.device)

    def step() -> None:
        train_step(model, batch, optimizer, precision=precision)

    step()  # what is chosen and loaded once is no part of a step
    events = profiled(setting, step)
    names = operators(events)
    chosen = [found for found in map(_CHOSEN.match, names) if found]
    forward = sorted(found["kind"] for found in chosen if not found["back"])
    backward = sorted(found["kind"] for found in chosen if found["back"])
    spans = on_device(events)
    ours = [event for event in spans if _KERNELS.search(event.name)]
    kernels = sorted({event.name for event in ours})
    numbers: dict[str, Any] = {"forward": forward, "backward": backward, "kernels": kernels}
    text = ", ".join(forward) or "none"
    if spans:
        share = total(merged(map(interval, ours))) / total(merged(map(interval, spans)))
        numbers["share_of_device_time"] = share
        short = ", ".join(f"`{re.split(r'[<(]', kernel)[0][-60:]}`" for kernel in kernels)
        text += f": {short}; {share:.0%} of the time"
    return Found(bool(forward) and forward == backward and _PLAIN not in names, text, numbers)
