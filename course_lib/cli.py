"""`course-lib`: train on your own CSV without writing a program.

Exit codes: 0 good, 1 the answer is no (a run that diverged), 2 something to correct, said in one line,
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from course_lib.config import BUILT_IN_DATA, TrainConfig, parse_settings, read_yaml
from course_lib.errors import UserError
from course_lib.metrics import RunFolder, to_json

GOOD, NO, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
DEBUG_VARIABLE = "COURSE_LIB_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors become one line on stderr."""
    try:
        arguments = _parser().parse_args(argv)
        return int(arguments.run(arguments))
    except UserError as error:
        return _complain(str(error), USER_ERROR)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except ArithmeticError as error:
        return _complain(str(error), NO)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _complain(_unexpected(error), USER_ERROR)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USER_ERROR, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="course-lib",
        description="Train a text classifier on your own CSV, fast and reproducibly.",
        epilog="course-lib COMMAND --help says more about a command.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(commands)
    info = commands.add_parser(
        "info", help="versions, device, threads, cache folder", description="What this machine has."
    )
    info.add_argument("--json", action="store_true", help="print JSON alone")
    info.set_defaults(run=_info)
    return parser


def _add_train(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train a classifier",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=textwrap.dedent("""\
            Train a text classifier and write a run folder: config, record, metrics, checkpoints, tokenizer
            and report.html.

            examples:
              course-lib train --data reviews.csv --out runs/a
              course-lib train --data reviews.csv --out runs/b --set learning_rate=1e-3 --set max_epochs=5
              course-lib train --out runs/a --resume        continue after a crash or ctrl-C"""),
        epilog=_keys_help(),
    )
    train.add_argument(
        "--data",
        metavar="FILE.csv",
        help=f"a CSV with the columns text,label; or '{BUILT_IN_DATA}' for the built-in corpus",
    )
    train.add_argument("--config", metavar="FILE.yaml", help="values for any of the keys below")
    train.add_argument(
        *("--set", "-s"),
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value; wins over --config",
    )
    train.add_argument("--out", metavar="DIR", help="the run folder (default: runs/ and the time of day)")
    train.add_argument("--resume", action="store_true", help="continue the run in --out")
    train.add_argument("--json", action="store_true", help="print the record as JSON alone")
    train.set_defaults(run=_train)


def _keys_help() -> str:
    defaults = TrainConfig(data=BUILT_IN_DATA).to_dict()
    del defaults["data"]
    lines = [f"  {name:<28} {'auto' if value is None else value}" for name, value in defaults.items()]
    return "keys for --set and --config, with their defaults:\n" + "\n".join(lines)


def _train(arguments: argparse.Namespace) -> int:
    if arguments.resume and not arguments.out:
        raise UserError("--resume needs the folder of the run: add --out DIR")
    out = Path(arguments.out or time.strftime("runs/%Y-%m-%d-%H%M%S"))
    config = _config(arguments, out)
    # Here and not above: torch takes seconds to load, and a typing error should not wait for it.
    from course_lib.train import run_training

    try:
        record = run_training(config, out, resume=arguments.resume)
    except KeyboardInterrupt:
        return _complain(_how_to_resume(RunFolder(out)), INTERRUPTED)
    print(to_json(record) if arguments.json else _summary(record, out))
    return GOOD


def _config(arguments: argparse.Namespace, out: Path) -> TrainConfig:
    values: dict[str, Any] = {}
    if arguments.resume:
        values |= RunFolder(out).read_config()
    if arguments.config:
        values |= read_yaml(arguments.config)
    values |= parse_settings(arguments.set)
    if arguments.data:
        values["data"] = arguments.data
    if "data" not in values:
        raise UserError(f"no data given: add --data FILE.csv, or --data {BUILT_IN_DATA}")
    config = TrainConfig.from_dict(values)
    if config.data == BUILT_IN_DATA:
        return config
    # Absolute, so that the run can be resumed from another folder.
    return TrainConfig(**{**config.to_dict(), "data": str(Path(config.data).expanduser().absolute())})


def _summary(record: dict[str, Any], out: Path) -> str:
    validation = record["validation"]
    return (
        f"validation accuracy {validation['accuracy']:.1%}, macro F1 {validation['macro_f1']:.3f}, "
        f"loss {validation['loss']:.3f} (best weights, step {record['best']['step']} of {record['step']})\n"
        f"trained in {record['train_seconds']:.1f} s, {record['samples_per_sec'] or 0:,.0f} texts/s; "
        f"report: {out / 'report.html'}"
    )


def _how_to_resume(folder: RunFolder) -> str:
    if not folder.holds_run:
        return "interrupted before the run began; nothing was written"
    step = folder.read_record().get("checkpoint_step", 0)
    kept = f"the checkpoint of step {step} is kept" if folder.last.exists() else "no checkpoint was due yet"
    return f"interrupted; {kept}. Continue with: course-lib train --out {folder.directory} --resume"


def _info(arguments: argparse.Namespace) -> int:
    from course_lib.data.cache import cache_dir
    from course_lib.environment import environment, hardware, resolve_device

    device, reason = resolve_device("auto")
    facts = environment() | hardware()
    facts |= {"device": str(device), "device_reason": reason, "cache": str(cache_dir())}
    if arguments.json:
        print(to_json(facts))
        return GOOD
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in facts.pop("packages").items())
    memory = facts.pop("memory_bytes")
    facts |= {"packages": packages, "memory": f"{memory / 2**30:.1f} GiB" if memory else "unknown"}
    facts["accelerators"] = ", ".join(facts["accelerators"]) or "none"
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<15} {value}")
    return GOOD


def _unexpected(error: Exception) -> str:
    first_line = (str(error).splitlines() or [""])[0]
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or 'a file'}; check space and permissions there"
    if "out of memory" in first_line.lower():
        return "out of memory: lower micro_batch_size or max_length (--set micro_batch_size=16)"
    return (
        f"unexpected {type(error).__name__}: {first_line}; this is a fault of course-lib, "
        f"{DEBUG_VARIABLE}=1 shows where"
    )


def _complain(message: str, code: int) -> int:
    print(f"course-lib: {message}", file=sys.stderr)
    return code
