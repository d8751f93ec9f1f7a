"""What the machine did while the clock ran: how busy it was, and what held it back. Facts for the evidence."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Literal

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_CORES = Path("/sys/devices/system/cpu")


def core_seconds(pid: int | Literal["thread-self"]) -> tuple[float, float]:
    """Seconds that the main thread of process `pid` has had a core, and that it was ready to run and had none.

    The kernel's own count (Linux: `schedstat`); zeros where there is none. Sleeping is neither.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        had, waited, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
        return int(had) / 1e9, int(waited) / 1e9
    return 0.0, 0.0


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Conditions:
    """Reads the machine's counters when made, and says what has changed `since`."""

    def __init__(self) -> None:
        self.load = psutil.getloadavg()[0]
        self.times = psutil.cpu_times()
        self.counters = _counters()

    def since(self) -> dict[str, Any]:
        """JSON values; what this system does not tell is absent."""
        spent = {k: v - getattr(self.times, k) for k, v in psutil.cpu_times()._asdict().items()}
        total = sum(spent.values()) or 1.0
        found: dict[str, Any] = {
            "load_average": [self.load, psutil.getloadavg()[0]],
            "busy_share": 1 - (spent["idle"] + spent.get("iowait", 0.0)) / total,
            "stolen_share": spent.get("steal", 0.0) / total,
        }
        with contextlib.suppress(OSError, AttributeError, NotImplementedError):
            found["frequency_mhz"] = psutil.cpu_freq().current
        with contextlib.suppress(OSError, ValueError, IndexError):
            found["quota_cores"] = _quota_cores()
        return found | {name: value - self.counters.get(name, 0) for name, value in _counters().items()}


def _quota_cores() -> float | None:
    """Cores that the control group may use; None without a limit. Raises `OSError` without control groups."""
    if (_CGROUPS / "cpu.max").exists():
        quota, period = (_CGROUPS / "cpu.max").read_text().split()
    else:
        quota, period = (
            (_CGROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
        )
    return int(quota) / int(period) if quota != "max" and int(quota) > 0 else None


def _counters() -> dict[str, int]:
    """Counts that only grow: times that heat or a quota held the processor back."""
    found = {}
    throttled = list(_CORES.glob("cpu*/thermal_throttle/core_throttle_count"))
    with contextlib.suppress(OSError, ValueError):
        if throttled:
            found["heat_throttled"] = sum(int(path.read_text()) for path in throttled)
        for path in (_CGROUPS / "cpu.stat", _CGROUPS / "cpu" / "cpu.stat"):
            for line in path.read_text().splitlines() if path.exists() else []:
                if line.startswith("nr_throttled "):
                    found["quota_throttled"] = int(line.split()[1])
    return found
