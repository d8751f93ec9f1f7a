"""`workbook doctor`: what could go wrong on this machine, tried rather than guessed, with one fix for each."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

#: Room for the data cache, a run folder with checkpoints and the evidence of a lesson.
NEEDED_DISK_BYTES = 1_000_000_000
KERNEL_SECONDS = 60


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `note` is no failure, but has a consequence that is worth knowing."""

    name: str
    level: Literal["ok", "note", "fail"]
    found: str
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def examine(*, on_finding: Callable[[Finding], None] | None = None) -> list[Finding]:
    """Look at everything; `on_finding` hears of each as it is known. Takes about ten seconds."""
    findings = []
    for look in (
        _python,
        _kernel,
        _widgets,
        _torch,
        _accelerator,
        _sandbox,
        _disk,
        _write_access,
        _data_cache,
    ):
        for finding in _guarded(look):
            findings.append(finding)
            if on_finding:
                on_finding(finding)
    return findings


def report(finding: Finding) -> str:
    """One line, and a second one with the fix where there is one."""
    mark = {"ok": "✓", "note": "·", "fail": "✗"}[finding.level]
    line = f"{mark} {finding.name:<12} {finding.found}"
    return f"{line}\n{'':<15}fix: {finding.fix}" if finding.fix else line


def _guarded(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:  # a doctor that falls ill is a finding too
        name = look.__name__.strip("_").replace("_", " ")
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        yield Finding(name, "fail", what, _REINSTALL)


_REINSTALL = "delete the folder .venv and run: python3 workbook.py start"


def _python() -> Iterator[Finding]:
    version = sys.version.split()[0]
    if sys.prefix == sys.base_prefix:
        yield Finding("Python", "note", f"{version}, not in an environment of its own: {sys.executable}")
    else:
        yield Finding("Python", "ok", f"{version} in {sys.prefix}")


def _kernel() -> Iterator[Finding]:
    """Start the kernel that notebooks get, run a line in it, and see whose Python it is."""
    from jupyter_client.manager import start_new_kernel

    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # as `workbook start` does
    manager, client = start_new_kernel(
        startup_timeout=KERNEL_SECONDS, kernel_name="python3", stderr=subprocess.DEVNULL
    )
    try:
        answer = client.execute_interactive(
            "import sys",
            user_expressions={"python": "sys.executable", "autograder": "__import__('autograder').__file__"},
            timeout=KERNEL_SECONDS,
            store_history=False,
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    values = answer["content"].get("user_expressions", {})
    if values.get("autograder", {}).get("status") != "ok":
        yield Finding("kernel", "fail", "the kernel `python3` cannot import autograder", _REINSTALL)
    elif (python := values["python"]["data"]["text/plain"].strip("'")) != sys.executable:
        fix = "open the course with `workbook start`, which brings its own kernel"
        yield Finding("kernel", "fail", f"the kernel `python3` is another Python: {python}", fix)
    else:
        yield Finding("kernel", "ok", "starts and runs a cell")


def _widgets() -> Iterator[Finding]:
    import ipywidgets

    extension = Path(
        sys.prefix, "share/jupyter/labextensions/@jupyter-widgets/jupyterlab-manager/package.json"
    )
    versions = f"ipywidgets {ipywidgets.__version__}, JupyterLab {importlib.metadata.version('jupyterlab')}"
    if extension.exists():
        yield Finding("widgets", "ok", versions)
    else:
        yield Finding(
            "widgets",
            "fail",
            f"{versions}, but JupyterLab's side of the widgets is missing",
            f"{sys.executable} -m pip install --force-reinstall --no-deps jupyterlab_widgets",
        )


_TRAIN_A_LITTLE = """
import torch
layer = torch.nn.Linear(8, 8)
layer(torch.randn(4, 8)).sum().backward()
assert torch.isfinite(layer.weight.grad).all()
mps = getattr(torch.backends, "mps", None)
print(torch.__version__, torch.get_num_threads(), torch.version.cuda or "-",
      torch.cuda.is_available(), bool(mps and mps.is_available()),
      torch.cuda.get_device_name(0) if torch.cuda.is_available() else "", sep="|")
"""


@functools.cache
def _ask_torch() -> tuple[list[str], str]:
    """Run torch in a process of its own, since a broken build may end it. Returns its answer and its last line."""
    done = subprocess.run(
        [sys.executable, "-c", _TRAIN_A_LITTLE], capture_output=True, text=True, timeout=300
    )
    words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return (done.stdout.strip().splitlines()[-1].split("|") if done.returncode == 0 else []), words


def _torch() -> Iterator[Finding]:
    answer, words = _ask_torch()
    if answer:
        yield Finding("torch", "ok", f"{answer[0]} computes a gradient on {answer[1]} threads")
    else:
        yield Finding("torch", "fail", words[:200], _REINSTALL)


def _accelerator() -> Iterator[Finding]:
    answer, _ = _ask_torch()
    driver = shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia/version").exists()
    if answer and answer[3] == "True":
        yield Finding("accelerator", "ok", answer[5])
    elif answer and answer[4] == "True":
        yield Finding("accelerator", "ok", "Apple GPU (mps)")
    elif driver and answer:
        why = "torch is a CPU build" if answer[2] == "-" else f"torch's CUDA {answer[2]} does not find it"
        fix = "install a build of torch for your driver into this environment" if answer[2] == "-" else ""
        yield Finding(
            "accelerator", "note", f"there is an NVIDIA driver, but {why}", fix or "update the NVIDIA driver"
        )
    else:
        yield Finding("accelerator", "ok", "none; every lesson works on the processor alone")


def _sandbox() -> Iterator[Finding]:
    from autograder.sandbox import probe

    status = probe()
    level: Literal["ok", "note"] = "note" if status.fix else "ok"
    yield Finding("sandbox", level, f"{status.level}: {status.reason}", status.fix)


def _folders() -> dict[str, Path]:
    from autograder.handout import default_folder
    from autograder.paths import data_directory
    from course_lib.data.cache import cache_dir

    return {
        "your notebooks": default_folder(),
        "progress": data_directory(),
        "data cache": cache_dir(),
        "temporary": Path(tempfile.gettempdir()),
    }


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _disk() -> Iterator[Finding]:
    scarce = []
    for name, path in _folders().items():
        free = shutil.disk_usage(_nearest_existing(path)).free
        if free < NEEDED_DISK_BYTES:
            scarce.append(f"{free / 1e9:.1f} GB for {name} in {path}")
    if scarce:
        yield Finding("disk", "fail", "only " + ", ".join(scarce), "free 1 GB there")
    else:
        yield Finding(
            "disk", "ok", f"at least {NEEDED_DISK_BYTES / 1e9:.0f} GB free in every folder that is used"
        )


_VARIABLES = {
    "your notebooks": "WORKBOOK_DIR",
    "progress": "WORKBOOK_DATA",
    "data cache": "COURSE_LIB_CACHE",
    "temporary": "TMPDIR",
}


def _write_access() -> Iterator[Finding]:
    refused = False
    for name, path in _folders().items():
        try:
            # Looking makes no folders: what can be written now can be made later.
            with tempfile.NamedTemporaryFile(dir=_nearest_existing(path), prefix=".workbook-doctor-"):
                pass
        except OSError as error:
            refused = True
            fix = f"give yourself write access, or set {_VARIABLES[name]} to a folder of your own"
            yield Finding("write access", "fail", f"{name}: cannot write to {path} ({error.strerror})", fix)
    if not refused:
        yield Finding("write access", "ok", "every folder that is used can be written")


def _data_cache() -> Iterator[Finding]:
    from course_lib.data.cache import cache_dir

    folder = cache_dir()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
    if size:
        yield Finding("data cache", "ok", f"{size / 1e6:.0f} MB in {folder}")
    else:
        yield Finding("data cache", "ok", f"empty; the first lesson fills {folder} in about a minute")
