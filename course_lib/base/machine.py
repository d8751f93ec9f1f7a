"""What a run ran on: versions, processor, memory, accelerator; and which device to use."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import subprocess
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.base.cache import installed_version
from course_lib.base.errors import UserError

if TYPE_CHECKING:
    import torch

_PACKAGES = ("training-workbook", "torch", "numpy", "tokenizers", "matplotlib", "tensorboard")


def environment() -> dict[str, Any]:
    """Versions of Python, the system and the packages that shape a run; None for one not installed."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "packages": {name: installed_version(name) for name in _PACKAGES},
        "code": {"folder": git_state(Path.cwd())},
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """`{"commit", "is_dirty"}` of the repository around `folder`, whose files changed since the commit when
    dirty (new files do not count). None outside a repository or without git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.check_output(command, text=True, timeout=20, stderr=subprocess.DEVNULL).strip()

    try:
        changes = git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
        return {"commit": git("rev-parse", "HEAD"), "is_dirty": bool(changes)}
    except (OSError, subprocess.SubprocessError):
        return None


def hardware() -> dict[str, Any]:
    """Processor, cores, threads that torch uses, memory in bytes (with psutil), accelerators by name."""
    import torch

    psutil = _module("psutil")
    return {
        "processor": processor_name(),
        "num_cores": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "memory_bytes": psutil.virtual_memory().total if psutil else None,
        "accelerators": _gpu_names(),
    }


def _gpu_names() -> list[str]:
    """Those that torch may use. Torch starts CUDA to tell their names: unless it is in use, the driver's tool does."""
    import torch

    num_gpus = torch.cuda.device_count()
    if torch.cuda.is_initialized() or not num_gpus:
        return [torch.cuda.get_device_name(i) for i in range(num_gpus)]
    names: list[str] = []
    with suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.check_output(
            command, text=True, timeout=20, stderr=subprocess.DEVNULL
        ).splitlines()
    return names if len(names) == num_gpus else ["unknown"] * num_gpus  # some may be hidden from torch


def memory_bytes(device: torch.device) -> dict[str, int]:
    """`memory_bytes` and `peak_memory_bytes` that this process has on `device`: of the allocator on CUDA, elsewhere the
    resident set.

    Empty where they cannot be known, as in a sandbox that hides processes.
    """
    import torch

    if device.type == "cuda":
        now, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        return {"memory_bytes": now, "peak_memory_bytes": peak}
    psutil, resource = _module("psutil"), _module("resource")  # the latter is not on Windows
    if not (psutil and resource):
        return {}
    # Linux counts the peak in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    try:
        return {"memory_bytes": psutil.Process().memory_info().rss, "peak_memory_bytes": peak}
    except psutil.Error:
        return {}


def reset_peak_memory(device: torch.device) -> None:
    """From here on `memory_bytes` tells the peak. On a CPU Linux alone can forget one."""
    import torch

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """Inside, a GPU is the one that torch takes where none is named: for streams, workspaces and waiting."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def resolve_device(requested: str) -> tuple[torch.device, str]:
    """The device for `"auto"`, `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"`, and why.

    Raises UserError for a device that torch does not know or that this machine does not have.
    """
    import torch

    has_mps = torch.backends.mps.is_available()
    if requested == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda"), f"auto: {torch.cuda.get_device_name(0)} is there"
        if has_mps:
            return torch.device("mps"), "auto: Apple's GPU is there"
        return torch.device("cpu"), "auto: torch sees no GPU"
    try:
        device = torch.device(requested)
    except RuntimeError:
        raise UserError(f"device must be auto, cpu, cuda, cuda:N or mps, got {requested!r}") from None
    num_cuda = torch.cuda.device_count()
    is_there = {"cpu": True, "mps": has_mps, "cuda": (device.index or 0) < num_cuda}.get(device.type, False)
    if not is_there:
        raise UserError(f"device {requested!r} is not on this machine; use device=auto or device=cpu")
    return device, f"{requested}: asked for"


def processor_name() -> str:
    """As the system gives it. Light: grading and the command line ask for it without loading torch."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.exists() else ""
    if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
        return found[1].strip()
    return platform.processor() or platform.machine()


def _module(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
