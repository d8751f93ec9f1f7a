"""What the machine did while the clock ran: how busy it was, and what held it back. Facts for the evidence."""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from autograder.common import MAX_SPREAD, Result

MUCH = 0.1  # of a core or of the time: less is no news
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


@dataclass(frozen=True, kw_only=True)
class Meanwhile:
    """What the machine did in a stretch of time; None is what this system does not tell.

    Attributes:
        load_average: of the last minute, before and after: number of processes.
        busy_share, stolen_share: of all cores' time, in use and taken by the host of a virtual machine.
        frequency_mhz: of the processor, at the end.
        quota_cores: that the control group may use; infinite without a limit.
        heat_throttled, quota_throttled: times that heat or the quota held the processor back.
    """

    load_average: tuple[float, float]
    busy_share: float
    stolen_share: float
    frequency_mhz: float | None
    quota_cores: float | None
    heat_throttled: int | None
    quota_throttled: int | None

    def to_dict(self) -> dict[str, Any]:
        """For evidence files: what this system does not tell is absent, and a quota without a limit is None."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return told | ({"quota_cores": None} if self.quota_cores == math.inf else {})


class Conditions:
    """Reads the machine's counters when made, and says what has changed `since`."""

    def __init__(self) -> None:
        self.load = psutil.getloadavg()[0]
        self.times = psutil.cpu_times()
        self.counters = _counters()

    def since(self) -> Meanwhile:
        """What the machine has done since then."""
        spent = {k: v - getattr(self.times, k) for k, v in psutil.cpu_times()._asdict().items()}
        total = sum(spent.values()) or 1.0
        held_back = {name: value - self.counters.get(name, 0) for name, value in _counters().items()}
        return Meanwhile(
            load_average=(self.load, psutil.getloadavg()[0]),
            busy_share=1 - (spent["idle"] + spent.get("iowait", 0.0)) / total,
            stolen_share=spent.get("steal", 0.0) / total,
            frequency_mhz=_frequency_mhz(),
            quota_cores=_quota_cores(),
            heat_throttled=held_back.get("heat_throttled"),
            quota_throttled=held_back.get("quota_throttled"),
        )


def disturbance(found: Meanwhile, ours: float) -> str:
    """What kept a measurement from being steady, in a sentence. `ours`: the cores that it used itself."""
    cores = psutil.cpu_count() or 1
    others = cores * found.busy_share - ours
    seen = []
    if others > MUCH * cores:
        seen.append(f"other programs kept {others:.1f} of {cores} cores busy")
    if found.stolen_share > MUCH:
        seen.append(f"the host of this virtual machine took {found.stolen_share:.0%} of its time away")
    if found.quota_throttled:
        limit = cores if found.quota_cores in (None, math.inf) else found.quota_cores
        seen.append(f"the limit of this container ({limit:g} cores) held it back")
    if found.heat_throttled:
        seen.append("the processor slowed down because it was hot")
    with contextlib.suppress(AttributeError, OSError):  # a system or a machine without batteries
        battery = psutil.sensors_battery()
        if battery and not battery.power_plugged:
            seen.append("the machine runs on its battery, which changes its speed")
    if not seen:
        return "Neither load nor heat explains it."
    return f"Meanwhile {', and '.join(seen)}."


def busiest(seconds: float = 0.5) -> str:
    """Which programs use the processor now, in a sentence; "" when none takes a tenth of a core. Takes `seconds`.

    For the eyes of whoever sits at this machine: it names what they run, and belongs in no result and no file.
    """
    me = psutil.Process()  # and the kernel or the shell that waits for it
    ours = {process.pid for process in [me, *me.parents()[:1], *me.children(recursive=True)]}
    before = {p: _cpu_seconds(p) for p in psutil.process_iter() if p.pid not in ours}
    time.sleep(seconds)
    used: dict[str, float] = {}
    for process, spent in before.items():
        if (share := (_cpu_seconds(process) - spent) / seconds) > MUCH:
            used[_name(process)] = used.get(_name(process), 0.0) + share
    most = sorted(used.items(), key=lambda item: -item[1])[:3]
    named = [f"{name} ({cores:.1f} cores)" for name, cores in most]
    return f"Busy on this machine now: {', '.join(named)}." if named else ""


def what_is_in_the_way(result: Result) -> str:
    """`busiest` where the machine was too restless to time on; "" for every other result of a check."""
    is_restless = result.verdict == "inconclusive" and result.speedup and result.speedup.spread > MAX_SPREAD
    return busiest() if is_restless else ""


def _cpu_seconds(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        is_kernel = any("ipykernel" in word for word in process.cmdline())
        return "the kernel of another notebook" if is_kernel else process.name()
    return "a program that has ended"


def _frequency_mhz() -> float | None:
    with contextlib.suppress(OSError, AttributeError, NotImplementedError):
        frequency: float = psutil.cpu_freq().current
        return frequency
    return None


def _quota_cores() -> float | None:
    """Cores that the control group may use; infinite without a limit, None without control groups."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if (_CGROUPS / "cpu.max").exists():
            quota, period = (_CGROUPS / "cpu.max").read_text().split()
        else:
            quota, period = (
                (_CGROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else math.inf
    return None


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
