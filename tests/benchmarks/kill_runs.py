"""Kill training runs with SIGKILL at random moments, resume each, and compare the weights at the end.

    python -m tests.benchmarks.kill_runs --runs 200 --inside-saves 60

A run is `run_training` in a process of its own, forked from a parent that has torch loaded. It is killed at a
random moment, or (the first `--inside-saves` runs) as soon as a checkpoint is being written; that the kill
fell inside a save is proved by the unfinished file it left. Every run is then resumed, sometimes killed
again, until it is through. Every checkpoint found after a kill is read.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# Imported here so that the forked processes need not: a run is then mostly training and saving.
import jinja2  # noqa: F401
import matplotlib.backends.backend_svg  # noqa: F401
import tokenizers  # noqa: F401
import torch.utils.tensorboard  # noqa: F401

from course_lib.base.files import BUILDING
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.training.checkpoint import load_checkpoint
from tests.benchmarks.made_csv import make_csv

VARIANTS: dict[str, dict[str, object]] = {
    "plain": {},
    "asynchronous, numbered": {"use_async_checkpoints": True, "keep_checkpoints": 2},
    "accumulation, early stopping": {"grad_accum_steps": 3, "early_stopping_patience": 50},
    "one-cycle, by seconds": {"schedule": "one-cycle", "checkpoint_every_seconds": 0.05},
}
MOST_KILLS = 3


def config_of(variant: str, csv_file: Path) -> TrainConfig:
    small = {"d_model": 32, "num_layers": 1, "max_epochs": 2, "micro_batch_size": 8, "vocab_size": 400}
    cadence = {"log_every_steps": 3, "checkpoint_every_steps": 6, "validate_every_steps": 30}
    values = {"data": str(csv_file), "device": "cpu", "precision": "32-true", **small, **cadence}
    return TrainConfig(**{**values, **VARIANTS[variant]})


def start(config: TrainConfig, out: Path, *, resume: bool) -> int:
    """Fork a process that trains; returns its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        run_training(config, out, resume=resume, progress=False)
        code = 0
    finally:
        os._exit(code)


def kill(child: int, out: Path, *, inside_save: bool, after_seconds: float) -> str:
    """Kill `child`; says where: `"finished"` (it was quicker), `"inside a save"` or `"elsewhere"`."""
    checkpoints, begun = out / "checkpoints", time.perf_counter()
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            if status:
                raise SystemExit(f"a run failed by itself, status {status}: {out}")
            return "finished"
        is_saving = inside_save and checkpoints.is_dir() and _unfinished(checkpoints)
        if is_saving or time.perf_counter() - begun > after_seconds:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "inside a save" if _unfinished(checkpoints) else "elsewhere"
        if not inside_save:
            time.sleep(0.0005)


def _unfinished(folder: Path) -> bool:
    return any(path.name.startswith(BUILDING) for path in folder.iterdir()) if folder.is_dir() else False


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--inside-saves", type=int, default=60, help="runs whose first kill aims at a save")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    places: Counter[str] = Counter()
    runs_inside = different = unreadable = num_checkpoints = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["COURSE_LIB_CACHE"] = str(folder / "cache")
        csv_file = folder / "texts.csv"
        make_csv(csv_file)
        expected, seconds = {}, {}
        for variant in VARIANTS:
            out, begun = folder / "whole", time.perf_counter()
            os.waitpid(start(config_of(variant, csv_file), out, resume=False), 0)
            expected[variant] = RunFolder(out).read_record()["weights_sha256"]
            seconds[variant] = time.perf_counter() - begun
            shutil.rmtree(out)
        for number in range(arguments.runs):
            variant = list(VARIANTS)[number % len(VARIANTS)]
            config, out, places_here = config_of(variant, csv_file), folder / "run", []
            for attempt in range(MOST_KILLS + 1):
                resume = RunFolder(out).config.exists()
                child = start(config, out, resume=resume)
                aims_at_save = attempt == 0 and number < arguments.inside_saves
                limit = rng.uniform(0.0, 1.0 if not aims_at_save else 5.0) * seconds[variant]
                if attempt == MOST_KILLS or (attempt and rng.random() < 0.6):
                    limit = 600.0  # this time it may end
                places_here.append(kill(child, out, inside_save=aims_at_save, after_seconds=limit))
                if places_here[-1] == "finished":
                    break
                for path in sorted((out / "checkpoints").glob("*.pt")):
                    num_checkpoints += 1
                    try:
                        load_checkpoint(path)
                    except Exception as error:
                        unreadable += 1
                        print(f"unreadable after a kill {places_here[-1]}: {path}: {error}", file=sys.stderr)
            places.update(places_here)
            runs_inside += "inside a save" in places_here
            sha256 = RunFolder(out).read_record().get("weights_sha256")
            if sha256 != expected[variant]:
                different += 1
                print(f"run {number} ({variant}, {places_here}) ended with other weights", file=sys.stderr)
            shutil.rmtree(out)
            if sys.stderr.isatty() or number % 20 == 19:
                print(f"{number + 1} of {arguments.runs} runs", file=sys.stderr)
    result = {
        "runs": arguments.runs,
        "kills": places["inside a save"] + places["elsewhere"],
        "kills_inside_a_save": places["inside a save"],
        "runs_killed_inside_a_save": runs_inside,
        "checkpoints_read": num_checkpoints,
        "unreadable_checkpoints": unreadable,
        "runs_with_other_weights": different,
    }
    print(json.dumps(result, indent=2))
    return int(bool(different or unreadable))


if __name__ == "__main__":
    raise SystemExit(main())
