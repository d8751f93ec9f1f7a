"""Wrong solutions of 8.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.checking.mutants import Mistake
from autograder.lessons.lesson_08.mutants.outcomes import OUTCOME

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
        "git": {"commit": git("rev-parse", "HEAD").strip(), "is_dirty": bool(git("status", "--porcelain"))},
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
    except BaseException as error:
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

_GIT = f'        "git": {{"commit": git("rev-parse", "HEAD").strip(), "is_dirty": {_DIRTY}}},\n'

_CODE: dict[str, Mistake] = {
    "run record without the dirty flag": ("without the dirty flag", f', "is_dirty": {_DIRTY}', ""),
    "always clean": ("does not follow the state", _DIRTY, "False"),
    "new files do not count": (
        "new files are not seen",
        'git("status", "--porcelain")',
        'git("diff", "--name-only", "HEAD")',
    ),
    "new files are left out of the status": (
        "new files are not seen",
        '"--porcelain"',
        '"--porcelain", "--untracked-files=no"',
    ),
    "what is staged does not count": (
        "what is added to the index is not seen",
        'git("status", "--porcelain")',
        'git("diff", "--name-only") or git("ls-files", "--others", "--exclude-standard")',
    ),
    "what git prints for the flag": ("not true or false", _DIRTY, 'git("status", "--porcelain")'),
    "the hash is cut short": (
        "cut short",
        'git("rev-parse", "HEAD").strip()',
        'git("rev-parse", "--short", "HEAD").strip()',
    ),
    "the end of the line is kept": (
        "stands behind the hash",
        'git("rev-parse", "HEAD").strip()',
        'git("rev-parse", "HEAD")',
    ),
    "git of another folder": (
        "another commit, or another text",
        'git("rev-parse", "HEAD").strip()',
        'os.popen("git rev-parse HEAD 2>&1").read().strip()',
    ),
    "the commit is asked for when the run is over": (
        "read after the run",
        '        record["times"]',
        '        record["git"]["commit"] = git("rev-parse", "HEAD").strip()\n        record["times"]',
    ),
    "the flag is asked for when the run is over": (
        "asked for when the run is over",
        '        record["times"]',
        f'        record["git"]["is_dirty"] = {_DIRTY}\n        record["times"]',
    ),
    "git is asked once for all runs": (
        "another commit, or another text",
        (
            _GIT,
            '        "git": KNOWN.setdefault("git", {"commit": git("rev-parse", "HEAD").strip(), "is_dirty": '
            + _DIRTY
            + "}),\n",
        ),
        ("def sha256", "KNOWN = {}\n\ndef sha256"),
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
    "a copy of dicts alone": (
        "also deep inside",
        ("copy.deepcopy(config)", "copied(config)"),
        (
            "def sha256",
            "def copied(value):\n"
            "    return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else value\n\ndef sha256",
        ),
    ),
    "the config as texts": (
        "not recorded as it was given",
        "copy.deepcopy(config)",
        "{key: str(value) for key, value in config.items()}",
    ),
    "the data are named, not fingerprinted": (
        "named, not fingerprinted",
        '"data": {"sha256": sha256(data_path)}',
        '"data": {"path": str(data_path)}',
    ),
    "the beginning of the data alone": (
        "of a part of the file",
        '"data": {"sha256": sha256(data_path)}',
        '"data": {"sha256": hashlib.sha256(Path(data_path).read_bytes()[:65536]).hexdigest()}',
    ),
    "the first million bytes of a file": (
        "of a part of the file",
        "Path(path).read_bytes()",
        'Path(path).open("rb").read(1 << 20)',
    ),
    "another hash of the data": ("another hash", "hashlib.sha256(Path", "hashlib.sha1(Path"),
    "the hash of a path is kept": (
        "of what the file held before",
        "def sha256",
        "import functools\n\n@functools.cache\ndef sha256",
    ),
}

_MACHINE: dict[str, Mistake] = {
    "the version of Python is unknown": ("missing or unknown", "platform.python_version()", '"unknown"'),
    "the version of torch is unknown": (
        "missing or unknown",
        '"torch": torch.__version__',
        '"torch": "unknown"',
    ),
    "the version of NumPy is left out": ("missing or unknown", ', "numpy": np.__version__', ""),
    "the cores are not counted": ("missing or unknown", "os.cpu_count()", "None"),
    "cores for threads": ("cores and threads are confused", "torch.get_num_threads()", "os.cpu_count()"),
    "the threads are unknown": ("missing or unknown", "torch.get_num_threads()", '"unknown"'),
}

MUTANTS: dict[str, tuple[Mutant, ...]] = {"8.3": wrong(_RECORD, _CODE | _MACHINE | OUTCOME)}
