"""Which build of torch to install, where the difference is gigabytes.

For Linux the build that a plain pip finds brings CUDA's libraries as packages of its own (torch 2.13.0: 2.7 GB in
all, where the CPU build has 0.2 GB). Leaving those packages out does not work: `import torch` then stops at the
first missing library (libcudnn). So on a machine without an NVIDIA driver the CPU build has to be found:

1. where pip's own settings (find-links, extra-index-url) offer it, pip prefers it by itself: `2.13.0+cpu` sorts
   above `2.13.0`, and the constraint `torch==2.13.0` admits both;
2. else WORKBOOK_TORCH_INDEX names an index, or a folder of wheels, to take torch alone from;
3. else a person at a terminal is asked; without one, the size is told and the download goes on.
"""

import os
import shutil
import sys
from pathlib import Path

from bootstrap.console import SetupError, human_size, say

INDEX_VARIABLE = "WORKBOOK_TORCH_INDEX"
CPU_WHEELS = "pytorch.org/get-started/locally (choose Linux, Pip, CPU: it is what stands after --index-url)"


def has_nvidia_driver() -> bool:
    """Whether the driver is there, on Linux or in Windows' Linux (WSL); says nothing about its version."""
    return (
        Path("/proc/driver/nvidia/version").exists()
        or Path("/usr/lib/wsl/lib/libcuda.so.1").exists()
        or shutil.which("nvidia-smi") is not None
    )


def choose(sizes: dict[str, int | None]) -> str | None:
    """Given pip's plan (package → bytes), return where to take the CPU build from, or None to follow the plan.

    Asks at most one question, and only where the answer saves gigabytes. Raises SetupError if told to stop.
    """
    cuda = {name: size or 0 for name, size in sizes.items() if name.startswith(("nvidia", "cuda", "triton"))}
    if not cuda or not sys.platform.startswith("linux") or has_nvidia_driver():
        return None
    total = human_size(sum(size or 0 for size in sizes.values()))
    say(f"""
pip's settings here offer only the CUDA build of torch, and this machine has no NVIDIA driver.
That download is {total}, of which {human_size(sum(cuda.values()))} are CUDA libraries without use here;
with the CPU build all of it is about 0.4 GB. Where its wheels are is told on
  {CPU_WHEELS}""")
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("CI"):
        say(f"Nobody is here to ask, so the download goes on; to spare it, set {INDEX_VARIABLE}=ADDRESS")
        return None
    say(f"\nPaste that address here, or write `all` to download the {total} nevertheless (Enter stops).")
    print("> ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer:
        raise SetupError(f"stopped before the download; start again, or set {INDEX_VARIABLE}=ADDRESS first")
    return None if answer.lower() == "all" else answer


def pip_source(source: str) -> list[str]:
    """pip's options for an index address or a folder of wheels."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return ["--no-index", "--find-links", str(folder.resolve())]
    if "://" not in source:
        raise SetupError(f"{source!r} is neither a folder nor an address (https://…) to take torch from")
    return ["--index-url", source]
