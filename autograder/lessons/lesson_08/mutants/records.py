"""Wrong solutions of 8.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_RECORD = """
import copy
import hashlib
import json
import os
import platform
import time
from pathlib import Path
import numpy as np
import torch

def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()

@exercise("8.3")
def record_run(train, config, data_path, out, git):
    out = Path(out)
    record = {
        "status": "finished", "failure": None, "config": copy.deepcopy(config),
        "git": {"commit": git("rev-parse", "HEAD"), "is_dirty": bool(git("status", "--porcelain"))},
        "data": {"sha256": sha256(data_path)},
        "environment": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "hardware": {"num_cores": os.cpu_count(), "num_threads": torch.get_num_threads()},
        "metrics": None,
    }
    start = time.perf_counter()
    try:
        labels, predictions, slices = train(config, out)
        right, slices = np.asarray(labels) == np.asarray(predictions), np.asarray(slices)
        by_slice = {
            str(name): {"accuracy": float(right[slices == name].mean()), "num_samples": int((slices == name).sum())}
            for name in np.unique(slices)
        }
        accuracy = float(right.mean())
        record["metrics"] = {"accuracy": accuracy, "slices": by_slice}
    except Exception as error:
        record |= {"status": "failed", "failure": f"{type(error).__name__}: {error}"}
        raise
    finally:
        files = [p for p in sorted(out.rglob("*")) if p.is_file()]
        record["artifacts"] = {p.relative_to(out).as_posix(): sha256(p) for p in files}
        record["times"] = {"seconds": time.perf_counter() - start}
        (out / "run.json").write_text(json.dumps(record, indent=2))
    return record
"""
_DIRTY = 'bool(git("status", "--porcelain"))'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.3": wrong(
        _RECORD,
        {
            "run record without the dirty flag": ("without the dirty flag", f', "is_dirty": {_DIRTY}', ""),
            "always clean": ("does not follow the state", _DIRTY, "False"),
            "git is asked when the run is over": (
                "read after the run",
                '        record["times"]',
                f'        record["git"] = {{"commit": git("rev-parse", "HEAD"), "is_dirty": {_DIRTY}}}\n'
                '        record["times"]',
            ),
            "failures are not recorded": (
                "failures are not recorded",
                ('        (out / "run.json").write_text(json.dumps(record, indent=2))\n', ""),
                (
                    "    return record",
                    '    (out / "run.json").write_text(json.dumps(record))\n    return record',
                ),
            ),
            "the error is swallowed": ("swallowed", "        raise\n", ""),
            "the data are named, not fingerprinted": (
                "named, not fingerprinted",
                '"data": {"sha256": sha256(data_path)}',
                '"data": {"path": str(data_path)}',
            ),
            "metrics without slices": ("metrics without slices", '"slices": by_slice', '"slices": {}'),
            "a mean of the slices": (
                "a mean over slices",
                (
                    "accuracy = float(right.mean())",
                    "accuracy = float(np.mean([s['accuracy'] for s in by_slice.values()]))",
                ),
                ('"status": "finished"', '"status": "finished"'),
            ),
            "equal runs differ": (
                "absolute paths stand among",
                '"num_cores": os',
                '"out": str(out), "num_cores": os',
            ),
            "the config as training left it": (
                "read after the run, which may have changed it",
                "copy.deepcopy(config)",
                "config",
            ),
            "a copy of the outermost dict alone": (
                "also deep inside",
                "copy.deepcopy(config)",
                "dict(config)",
            ),
        },
    )
}
