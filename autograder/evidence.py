"""One file per checked exercise: enough to see how a verdict came about, and to ask again."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from autograder.paths import data_directory

SCHEMA_VERSION = 1
_PACKAGES = ("torch", "numpy", "scipy", "tokenizers", "training-workbook")


def path_of(exercise_id: str, source: str) -> Path:
    """Where the evidence of this exercise and this source lies."""
    return data_directory() / "evidence" / f"{exercise_id}-{_hash(source)[:16]}.json"


def save(
    result: dict[str, Any],
    source: str,
    blocks: list[dict[str, Any]],
    prior_blocks: list[dict[str, Any]],
    threads: int,
    seed_sha256: str,
) -> str | None:
    """Write the evidence and return its path; None when the folder cannot be written, which spoils no grade."""
    path = path_of(result["id"], source)
    record = {
        "schema_version": SCHEMA_VERSION,
        "result": {key: value for key, value in result.items() if key != "evidence"},
        "source": source,
        "source_sha256": _hash(source),
        "blocks": prior_blocks + blocks,
        "threads": threads,
        "seed_sha256": seed_sha256,
        "hardware": hardware(),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(record, file, indent=1)
        Path(file.name).replace(path)
    except OSError:
        return None
    return str(path)


def read(path: Path) -> dict[str, Any]:
    """The record in an evidence file. Raises `UserError` when it is not one."""
    from course_lib.errors import UserError

    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not an evidence file ({error})") from None
    if not isinstance(record, dict) or not {"source", "result", "schema_version"} <= record.keys():
        raise UserError(f"{path}: not an evidence file; `workbook check NOTEBOOK --json` names them")
    if record["schema_version"] != SCHEMA_VERSION:
        raise UserError(f"{path}: written by another version of the course; check the notebook again")
    return record


def open_blocks(exercise_id: str, source: str) -> list[dict[str, Any]]:
    """Blocks of an earlier inconclusive check of the same code on the same hardware: a rerun goes on from there."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(path_of(exercise_id, source).read_text(encoding="utf-8"))
        same_machine = record["hardware"] == hardware() and record["schema_version"] == SCHEMA_VERSION
        if record["result"]["verdict"] == "inconclusive" and same_machine:
            return list(record["blocks"])
    return []


def hardware() -> dict[str, Any]:
    """What the measurement ran on."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": _processor_name(),
        "cores": os.cpu_count(),
    }


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _version(name: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
