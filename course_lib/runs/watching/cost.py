"""What a run costs in time, money and energy, how much of the hardware it used, and a stop before the budget."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.distributed import from_main_process
from course_lib.measuring import count_events
from course_lib.runs.config import TrainConfig
from course_lib.runs.watching.peaks import data_sheet_peak as data_sheet_peak
from course_lib.runs.watching.peaks import peak_flops as peak_flops
from course_lib.training import Callback, TrainState, evaluation_mode

Records = Sequence[Mapping[str, Any]]

WATTS_PER_BUSY_CORE = 6.0
"""For the estimate of energy on a CPU: server processors are rated at 4 to 7 W per core."""
GPU_ENERGY = "measured: NVML's counter of this process's GPU"
NO_ENERGY = (
    'not known: NVML is not installed, or counts none on this GPU (pip install "training-workbook[gpu]")'
)
CPU_ENERGY = f"estimated: {WATTS_PER_BUSY_CORE:g} W for each core that this process keeps busy"


def cost(seconds: float | None, price_per_hour: float | None) -> float | None:
    """Money for `seconds`, in the currency of the price; None when either is not known."""
    return None if seconds is None or price_per_hour is None else seconds / 3600 * price_per_hour


def time_to_target(records: Records, config: TrainConfig) -> float | None:
    """`elapsed_seconds` (wall clock of all sessions, as `CostMeter` notes it) of the first validation whose
    `config.monitor` is at `config.target` or better; None when none is, or there is no target."""
    if config.target is None:
        return None
    sign = 1 if config.higher_is_better else -1
    for record in records:
        value = record.get(config.metric) if record["kind"] == "validation" else None  # None: was NaN
        if value is not None and sign * value >= sign * config.target:
            return float(record["elapsed_seconds"])
    return None


class CostMeter(Callback):
    """Adds `elapsed_seconds` and `energy_joules` of the run so far to each record, and the hardware's `readings`
    to each `"train"` record; with a budget, stops the run before it is spent.

    Goes before the callbacks that read records. The sessions before a resume count too, but for what came
    after their last checkpoint. The run stops at a safe point, where it saves, when another pause as long as
    the longest so far would be too much money. `clock` gives seconds.
    """

    name = "cost"

    def __init__(
        self, config: TrainConfig, device: torch.device, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.config, self.device, self.clock = config, device, clock
        self._before = self._start = {"elapsed_seconds": 0.0, "energy_joules": 0.0}
        self._start = self.state_dict()
        self._longest_pause = self._last_safe_point = 0.0

    def state_dict(self) -> dict[str, Any]:
        """`elapsed_seconds` and `energy_joules` (NaN: not known) over all sessions of the run."""
        now = {"elapsed_seconds": self.clock(), "energy_joules": energy_joules(self.device)}
        return {name: self._before[name] + now[name] - self._start[name] for name in now}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._before, self._last_safe_point = dict(state), state["elapsed_seconds"]

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        record |= self.state_dict() | (readings(self.device) if record["kind"] == "train" else {})

    def on_safe_point(self, state: TrainState) -> None:
        now = self.state_dict()["elapsed_seconds"]
        price, budget = self.config.price_per_hour, self.config.budget
        self._longest_pause = max(self._longest_pause, now - self._last_safe_point)
        self._last_safe_point = now
        if budget is None or price is None:
            return
        # Clocks differ between processes; all must stop at the same step.
        if from_main_process((now + self._longest_pause) / 3600 * price >= budget):
            state.stop(
                f"budget: {now / 3600 * price:.4g} of {budget:g} {self.config.currency} are spent, and the next "
                f"{self._longest_pause:.1f} s may need the rest"
            )

    def summary(self, records: Records) -> dict[str, Any]:
        """Time, money and energy of the run, and of reaching `config.target`: None where a price or target is
        not given or the target was not reached."""
        config, totals, reached = self.config, self.state_dict(), time_to_target(records, self.config)
        return {
            "elapsed_hours": totals["elapsed_seconds"] / 3600,
            "price_per_hour": config.price_per_hour,
            "currency": config.currency,
            "cost": cost(totals["elapsed_seconds"], config.price_per_hour),
            "time_to_target_seconds": reached,
            "cost_to_target": cost(reached, config.price_per_hour),
            "energy_watt_hours": totals["energy_joules"] / 3600,
            "energy_source": energy_source(self.device, totals["energy_joules"]),
        }


def energy_source(device: torch.device, joules: float) -> str:
    """How `joules` of a run on `device` were found, or that they were not."""
    if device.type != "cuda":
        return CPU_ENERGY
    return NO_ENERGY if math.isnan(joules) else GPU_ENERGY


def energy_joules(device: torch.device) -> float:
    """A counter of energy: NVML's of a GPU (NaN where it has none), else an estimate from this process's CPU
    time. Differences of it mean something."""
    if device.type != "cuda":
        return time.process_time() * WATTS_PER_BUSY_CORE
    try:
        pynvml: Any = importlib.import_module("pynvml")

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
    except Exception:  # no package, no driver, no such counter: each has an error of its own
        return math.nan


def readings(device: torch.device) -> dict[str, float]:
    """What the hardware says of itself: NVML's readings of a GPU (`gpu_utilisation` is the share of time in
    which any kernel ran: no measure of efficiency), else `cpu_load` (share of all cores
    since the last call) and `process_memory_bytes`. Readings that cannot be had are left out."""
    try:
        if device.type != "cuda":
            import psutil

            return {
                "cpu_load": psutil.cpu_percent() / 100,
                "process_memory_bytes": float(psutil.Process().memory_info().rss),
            }
        return {
            "gpu_memory_bytes": float(torch.cuda.device_memory_used(device)),
            "gpu_utilisation": torch.cuda.utilization(device) / 100,
            "gpu_temperature_celsius": float(torch.cuda.temperature(device)),
            "gpu_power_watts": torch.cuda.power_draw(device) / 1e3,
        }
    except Exception:  # no package, no driver, not offered: each has an error of its own
        return {}


def utilisation(records: Records, model: nn.Module, lengths: Any, peak: tuple[float, str]) -> dict[str, Any]:
    """Arithmetic that training needed / that the hardware could have done in the time: `mfu` where the peak is
    from a data sheet, `matmul_peak_share` where it is measured; with how it was found. `peak` as `peak_flops`
    gives it.

    Real tokens count, padding does not, nor does what activation checkpointing computes twice. The first log
    is left out: it holds the warm-up. Definition of MFU: Chowdhery et al., "PaLM", 2022, appendix B.
    """
    windows = [record for record in records if record["kind"] == "train"]
    windows = windows[1:] or windows
    if not windows:
        return {}
    tokens_per_sec = sum(w["num_tokens"] for w in windows) / sum(w["seconds"] for w in windows)
    flops = flops_per_token(model, lengths)
    kind = "matmul_peak_share" if peak[1].startswith("measured") else "mfu"
    found = {"flops_per_token": flops, "peak_flops_per_sec": peak[0], "peak_source": peak[1]}
    return {kind: tokens_per_sec * flops / peak[0], **found}


def flops_per_token(model: nn.Module, lengths: Any) -> float:
    """Floating-point operations of forward and backward for one token of texts of these `lengths` [n], counted
    by `count_events` on a text of which nothing is learned.

    Attention costs in proportion to the length: per token, the texts cost together what one of their
    size-biased mean length does.
    """
    sizes = np.asarray(lengths, dtype=np.float64)
    width = max(1, round(float((sizes**2).sum() / sizes.sum())))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    input_ids = torch.zeros(1, width, dtype=torch.int64, device=trained[0].device)
    # Evaluating computes nothing twice, nor does plain attention, where the fused ones do in backward.
    with evaluation_mode(model), sdpa_kernel(SDPBackend.MATH), count_events() as counts:
        logits = model(input_ids, input_ids == 0)
        torch.autograd.grad(logits.sum(), trained, allow_unused=True)
    return counts.total_flops / width
