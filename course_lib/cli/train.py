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
              course-lib train --data reviews.csv --dry-run show what would be done, and plot the schedule
              torchrun --nproc-per-node 2 -m course_lib train --data reviews.csv --out runs/c"""),
        epilog=keys_help(),
    )
    add_config_options(train)
    train.add_argument("--out", metavar="DIR", help="the run folder (default: runs/ and the time of day)")
    train.add_argument("--resume", action="store_true", help="continue the run in --out")
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
    config = config_from(arguments, base=RunFolder(out).read_config() if arguments.resume else None)
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


def _dry_run(config: TrainConfig, out: Path, *, as_json: bool) -> int:
    from course_lib.runs import plan_training

    plan = plan_training(config, out)
    lines = [f"{name.replace('_', ' '):<18} {value}" for name, value in plan.items()]
    print(to_json(plan) if as_json else "\n".join(lines))
    return GOOD


def _summary(record: dict[str, Any], out: Path) -> str:
    scores = record["validation"]
    named = {"accuracy": "accuracy", "macro_f1": "macro F1", "perplexity": "perplexity", "loss": "loss"}
    shown = ", ".join(f"{words} {scores[key]:.4g}" for key, words in named.items() if key in scores)
    lines = [
        f"validation: {shown} (best weights, step {record['best']['step']} of {record['step']})",
        health_text(record["health"]),
        f"trained in {record['train_seconds']:.1f} s, {record['samples_per_sec'] or 0:,.0f} texts/s; "
        f"report: {out / 'report.html'}",
    ]
    if record["stop_reason"]:
        lines.insert(1, f"stopped early: {record['stop_reason']}")
    return "\n".join(lines)


def _how_to_resume(folder: RunFolder) -> str:
    if not folder.holds_run:
        return "interrupted before the run began; nothing was written"
    step = folder.read_record().get("checkpoint_step", 0)
    kept = f"the checkpoint of step {step} is kept" if folder.last.exists() else "no checkpoint was due yet"
    return f"interrupted; {kept}. Continue with: course-lib train --out {folder.directory} --resume"
