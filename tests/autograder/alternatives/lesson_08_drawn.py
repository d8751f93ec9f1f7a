"""Right solutions of lesson 08 that went roads nobody had thought of."""

# %%
import contextlib
import datetime
import hashlib
import json
import os
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise


def sha256_of(path: str | os.PathLike) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def files_under(folder: Path) -> Iterator[tuple[str, str]]:
    """Name relative to `folder` with "/", and path, of each file, in folders too."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)  # noqa: PTH118
            yield os.path.relpath(path, folder).replace(os.sep, "/"), path


def judge(labels: np.ndarray, predictions: np.ndarray, slices: list[str]) -> dict[str, Any]:
    hits = defaultdict(list)
    for label, prediction, name in zip(labels, predictions, slices, strict=True):
        hits[str(name)].append(bool(label == prediction))
    everything = [hit for of_slice in hits.values() for hit in of_slice]
    return {
        "accuracy": sum(everything) / len(everything) if everything else None,
        "slices": {
            name: {"accuracy": sum(own) / len(own), "num_samples": len(own)}
            for name, own in sorted(hits.items())
        },
    }


@contextlib.contextmanager
def written_whatever_happens(record: dict[str, Any], out: Path) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
        record |= {"status": "finished", "failure": None}
    except BaseException as error:
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
        # format_exception_only shows a SyntaxError in its own way: make sure of the message.
        if str(error) not in message:
            message += f"\n{error}"
        record |= {"status": "failed", "failure": message, "metrics": None}
        raise
    finally:
        record["artifacts"] = {name: sha256_of(path) for name, path in sorted(files_under(out))}
        record["times"]["seconds"] = time.monotonic() - begin
        whole = out / "run.json.tmp"
        whole.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(whole, out / "run.json")  # noqa: PTH105 - a reader never sees half a record


@exercise("8.3")
def record_run(
    train: Callable[[dict[str, Any], Path], tuple[np.ndarray, np.ndarray, list[str]]],
    config: dict[str, Any],
    data_path: Path,
    out: Path,
    git: Callable[..., str],
) -> dict[str, Any]:
    """Run `train(config, out)` and write what repeats and judges it to `out/"run.json"`; returns the same."""
    now = datetime.datetime.now(datetime.UTC)
    record: dict[str, Any] = {
        "config": json.loads(json.dumps(config)),  # a copy all the way down
        "git": {
            "commit": git("rev-parse", "HEAD").strip(),
            "is_dirty": bool(git("status", "--porcelain").strip()),
        },
        "data": {"sha256": sha256_of(data_path)},
        "environment": {
            "python": sys.version.split()[0],
            "torch": str(torch.__version__),
            "numpy": np.__version__,
        },
        "hardware": {
            "num_cores": os.cpu_count() or 1,
            "num_threads": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "times": {"started_at": now.isoformat()},
    }
    with written_whatever_happens(record, out):
        record["metrics"] = judge(*train(config, out))
    return json.loads((out / "run.json").read_text(encoding="utf-8"))


# %%
import math
import random
from collections.abc import Callable

import numpy as np
import torch
from scipy import stats

from autograder import exercise


@exercise("8.6")
def cost_of_determinism(step: Callable[[], object], clock: Callable[[], float]) -> dict[str, float]:
    """How many times as long `step()` takes with `torch.use_deterministic_algorithms(True)` as without."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
    )

    def restore():
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.backends.cudnn.benchmark = before[2]

    def time_with():
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        start = clock()
        step()
        return clock() - start

    def time_without():
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = before[2]
        start = clock()
        step()
        return clock() - start

    # Half of the pairs begin with each setting, in an order drawn by a generator of our own.
    orders = [(time_with, time_without), (time_without, time_with)] * 300
    random.Random(0).shuffle(orders)
    try:
        for _ in range(20):
            time_without()
        for _ in range(20):
            time_with()
        pairs = [{timed: timed() for timed in order} for order in orders]
    finally:
        restore()

    logs = np.array([math.log(pair[time_with] / pair[time_without]) for pair in pairs])
    # Wilcoxon's interval: the means of all pairs of pairs, their median, and the ranks around it.
    n = len(logs)
    one, other = np.triu_indices(n)
    averages = np.sort((logs[one] + logs[other]) / 2)
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    rank = math.floor(n * (n + 1) / 4 - stats.norm.ppf(0.975) * spread)
    found = averages[rank], np.median(averages), averages[-1 - rank]
    low, ratio, high = (math.exp(value) for value in found)
    return {"ratio": ratio, "low": low, "high": high}
