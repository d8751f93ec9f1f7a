"""`course-lib train`: a table becomes a trained model in a run folder."""

from __future__ import annotations

import argparse
import os
import textwrap
import time
from pathlib import Path
from typing import Any

from course_lib.base import UserError, to_json
from course_lib.cli.common import GOOD, INTERRUPTED, add_config_options, complain, config_from, keys_help
from course_lib.runs import RunFolder, TrainConfig, health_text


def add(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train a model",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=textwrap.dedent("""\
            Train a model and write a run folder: config, record, metrics, checkpoints, tokenizer and
            report.html.

            examples:
              course-lib train --data reviews.csv --out runs/a
              course-lib train --data reviews.csv --out runs/b --set learning_rate=1e-3 --set max_epochs=5
              course-lib train --out runs/a --resume        continue after a crash or ctrl-C
              course-lib train --out runs/a --resume --set max_epochs=20    more epochs, with schedule=constant
              course-lib train --init-from runs/a --out runs/b              more epochs, with any schedule
              course-lib train --data reviews.csv --dry-run show what would be done, and plot the schedule
              torchrun --nproc-per-node 2 -m course_lib train --data reviews.csv --out runs/c"""),
        epilog=keys_help,
    )
    add_config_options(train)
    train.add_argument("--out", metavar="DIR", help="the run folder (default: runs/ and the time of day)")
    train.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --out, also one to which --set gives more epochs",
    )
    train.add_argument(
        "--init-from",
        metavar="RUN",
        help="begin a new run with the best weights, tokenizer and config of that one",
    )
    train.add_argument(
        "--dry-run", action="store_true", help="resolve every 'auto', plot the schedule, train nothing"
    )
    train.set_defaults(run=_train)


def _train(arguments: argparse.Namespace) -> int:
    if arguments.resume and not arguments.out:
        raise UserError("--resume needs the folder of the run: add --out DIR")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not arguments.out:  # the time is not the same for all
        raise UserError("several processes need one folder: add --out DIR")
    out = Path(arguments.out or time.strftime("runs/%Y-%m-%d-%H%M%S"))
    config = config_from(arguments, base=_base(arguments, out))
    if arguments.dry_run:
        return _dry_run(config, out, as_json=arguments.json)
    # Here and not above: torch takes seconds to load, and a typing error should not wait for it.
    from course_lib.runs import run_training

    try:
        record = run_training(config, out, resume=arguments.resume)
    except KeyboardInterrupt:
        return complain(_how_to_resume(RunFolder(out)), INTERRUPTED)
    if record:  # other processes than the first have nothing to say
        print(to_json(record) if arguments.json else _summary(record, out))
    return GOOD


def _base(arguments: argparse.Namespace, out: Path) -> dict[str, Any] | None:
    """The values to begin with: those of the run that is to go on, or that a new one starts from."""
    if arguments.resume and arguments.init_from:
        raise UserError("--resume continues the run in --out, --init-from begins another: give one of them")
    if arguments.resume:
        return RunFolder(out).read_config()
    if arguments.init_from:
        return RunFolder(arguments.init_from).read_config() | {"init_from": arguments.init_from}
    return None


def _dry_run(config: TrainConfig, out: Path, *, as_json: bool) -> int:
    from course_lib.runs import plan_training

    plan = plan_training(config, out)
    gap = "\n" + " " * 19
    lines = [f"{name.replace('_', ' '):<18} {value.replace(chr(10), gap)}" for name, value in plan.items()]
    print(to_json(plan) if as_json else "\n".join(lines))
    return GOOD


def _summary(record: dict[str, Any], out: Path) -> str:
    baseline = record.get("baseline") or {}
    lines = [
        f"validation: {_scores(record['validation'])} "
        f"(best weights, step {record['best']['step']} of {record['step']})",
        *([f"test: {_scores(record['test'])}"] if record.get("test") else []),
        *([f"model: {record['resolved']['model']}"] if record.get("choice") else []),
        *([f"linear model: {_scores(baseline)} ({baseline['name']})"] if "accuracy" in baseline else []),
        health_text(record["health"]),
        f"trained in {record['train_seconds']:.1f} s, {record['samples_per_sec'] or 0:,.0f} texts/s; "
        f"report: {out / 'report.html'}",
    ]
    if record["stop_reason"]:
        lines.insert(1, f"stopped early: {record['stop_reason']}")
    return "\n".join(lines)


def _scores(scores: dict[str, Any]) -> str:
    named = {"accuracy": "accuracy", "macro_f1": "macro F1", "micro_f1": "micro F1"}
    named |= {"mae": "MAE", "rmse": "RMSE", "r2": "R²", "perplexity": "perplexity", "loss": "loss"}
    return ", ".join(f"{words} {scores[key]:.4g}" for key, words in named.items() if key in scores)


def _how_to_resume(folder: RunFolder) -> str:
    if not folder.holds_run:
        return "interrupted before the run began; nothing was written"
    step = folder.read_record().get("checkpoint_step", 0)
    kept = f"the checkpoint of step {step} is kept" if folder.last.exists() else "no checkpoint was due yet"
    return f"interrupted; {kept}. Continue with: course-lib train --out {folder.directory} --resume"
