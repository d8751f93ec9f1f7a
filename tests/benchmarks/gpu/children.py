"""Parts in processes of their own: an error of CUDA spoils its process for good, and a hang ends by force alone."""

from __future__ import annotations

import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.benchmarks.gpu.lines import Line, Row, failed, judge

PARTS = {
    "correctness": 60.0,
    "syncs": 40.0,
    "fsdp": 40.0,
    "throughput": 250.0,
    "attention": 40.0,
    "transfer": 40.0,
    "auto_batch": 60.0,
    "nvml": 30.0,
    "saving": 40.0,
}
"""The modules of this package that have `lines(setting)`, and how many seconds of ten minutes each may take. What one
leaves over is for those after it."""
TEN_MINUTES = 600.0


def run_parts(names: Sequence[str], options: Sequence[str], seconds: float) -> dict[str, Any]:
    """Each part in a new process, started with `options`; all of them within `seconds`. Returns the report."""
    start, due, described, rows = time.monotonic(), 0.0, dict[str, Any](), list[Row]()
    for name in names:
        due += PARTS[name] * seconds / TEN_MINUTES
        told, found = _run_part(name, options, max(0.0, due - (time.monotonic() - start)))
        described = described or told
        rows += found
    described = described or {"device": {}, "versions": {}}
    return described | {"seconds": time.monotonic() - start, "rows": [row.to_dict() for row in rows]}


def _run_part(name: str, options: Sequence[str], limit: float) -> tuple[dict[str, Any], list[Row]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.gpu",
            "--child",
            name,
            "--report",
            str(report),
            *options,
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        why = ""
        try:
            if code := process.wait(limit):
                why = f"the process ended with code {code}"
        except subprocess.TimeoutExpired:
            why = f"over its {limit:.0f} s"
        finally:
            _kill(process)
        return _read(name, report, why)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The process and those that it has started, if any is left."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _read(name: str, report: Path, why: str) -> tuple[dict[str, Any], list[Row]]:
    """What a part has told, also one that was stopped in the middle: the lines that are missing have failed."""
    told = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    if not told:
        return {}, [Row(name, "all of it", "", f"failed: {why or 'it said nothing'}")]
    described, rows = told[0], [Row(**row) for row in told[1:]]
    for number, (what, criterion) in enumerate(described.pop("plan")[len(rows) :]):
        rows.append(Row(name, what, criterion, f"not run: {why}" if number else f"failed: {why}"))
    return described, rows


def tell(name: str, device: str, is_quick: bool, report: Path) -> None:
    """In the child: run a part and write, line by line, what came of it."""
    with report.open("w", encoding="utf-8") as file:

        def write(told: dict[str, Any]) -> None:
            print(json.dumps(told), file=file, flush=True)

        described: dict[str, Any] = {}
        try:
            from tests.benchmarks.gpu.setting import Setting

            setting = Setting.of(device, is_quick)
            described = about(setting)
            lines = lines_of(name, setting)
        except Exception as error:  # any: a device that is not there, something that the part is made of
            write({"plan": [], **described})
            write(failed(name, "all of it", error).to_dict())
            return
        write({"plan": [(line.what, line.criterion) for line in lines], **described})
        for row in judge(name, lines):
            write(row.to_dict())
            print(f"{name}: {row.what}: {row.verdict} {row.found}".rstrip(), file=sys.stderr, flush=True)


def lines_of(name: str, setting: Any) -> list[Line]:
    made: Iterator[Line] = importlib.import_module(f"tests.benchmarks.gpu.{name}").lines(setting)
    return list(made)


def about(setting: Any) -> dict[str, Any]:
    """The device and the versions that its results hold for."""
    import numpy as np
    import torch

    from course_lib.base import processor_name

    device: dict[str, Any] = {"processor": processor_name(), "cores": os.cpu_count()}
    versions: dict[str, Any] = {
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
    }
    if setting.is_cuda:
        found = torch.cuda.get_device_properties(setting.device)
        device = {"GPU": found.name, "GB": round(found.total_memory / 1e9, 1)} | device
        device |= {
            "capability": f"{found.major}.{found.minor}",
            "multiprocessors": found.multi_processor_count,
        }
        versions |= {"CUDA": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()}
        versions["driver"] = _driver()
    return {"device": device, "versions": versions}


def _driver() -> str:
    with suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        told = subprocess.check_output(command, text=True, timeout=20, stderr=subprocess.DEVNULL)
        return told.partition("\n")[0].strip()
    return ""
