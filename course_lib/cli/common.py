"""What several commands share: the options that make a config, and the output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_lib.base import UserError, check_keys, keys_text, require
from course_lib.runs import BUILT_IN_DATA, FRAME, TrainConfig, config_keys, known_keys, read_config

GOOD, NO, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
_PATHS = ("data", "validation_data", "test_data", "hf_model", "init_from")


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """`--data`, `--config`, `--set`, `--json`: the same for every command that trains."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        help=f"a CSV, TSV, JSON or Parquet file with texts and labels; or '{BUILT_IN_DATA}'",
    )
    parser.add_argument(
        "--config",
        metavar="FILE.yaml",
        help="values for any of the keys that `course-lib train --help` lists",
    )
    parser.add_argument(
        *("--set", "-s"),
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value; wins over --config",
    )
    parser.add_argument("--json", action="store_true", help="print JSON alone")


def keys_help() -> str:
    """All keys of a config, what they may be and mean, for a command's epilog."""
    head = "keys for --set and --config, with their defaults; KEY= takes a value back to 'not set':"
    return f"{head}\n\n{keys_text(config_keys())}"


def config_from(arguments: argparse.Namespace, *, base: dict[str, Any] | None = None) -> TrainConfig:
    """The config of `--config`, `--set` and `--data`, each winning over the one before; `base` is the first."""
    values = dict(base or {})
    if arguments.config:
        values |= read_config(arguments.config)
    values |= parse_settings(arguments.set)
    if arguments.data:
        values["data"] = arguments.data
    if "data" not in values:
        raise UserError(f"no data given: add --data FILE.csv, or --data {BUILT_IN_DATA}")
    config = TrainConfig.from_dict(values)
    # Absolute, so that the run can be resumed from another folder.
    named = {key: getattr(config, key) for key in _PATHS}
    paths = {
        key: str(Path(value).expanduser().absolute())
        for key, value in named.items()
        # A model that is no folder stays as it was written: the error speaks of that name.
        if value
        and value not in (BUILT_IN_DATA, FRAME)
        and (key != "hf_model" or Path(value).expanduser().exists())
    }
    return TrainConfig(**{**config.to_dict(), **paths})


TABLE_KEYS = ("text_column", "label_column", "encoding", "has_header")


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """`--weights` and `--set`: the same for every command that gives a table to a trained run."""
    parser.add_argument(
        "--weights", choices=("best", "last"), default="best", help="of which step (default: %(default)s)"
    )
    parser.add_argument(
        *("--set", "-s"),
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=f"how this table is read, where not as the run's own: {', '.join(TABLE_KEYS)}",
    )


def table_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `--set` says of a table. Raises UserError for another key, or a value that the key cannot have."""
    values = parse_settings(arguments.set)
    if other := [key for key in values if key not in TABLE_KEYS]:
        raise UserError(f"--set {other[0]}: only {', '.join(TABLE_KEYS)} can be set for a table")
    config = TrainConfig.from_dict({"data": BUILT_IN_DATA, **values})
    return {key: getattr(config, key) for key in values}


def complain(message: str, code: int) -> int:
    print(f"course-lib: {message}", file=sys.stderr)
    return code


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`["learning_rate=1e-3"]` -> `{"learning_rate": "1e-3"}`; the values are read as YAML."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write --set key=value, for example --set max_epochs=5")
        check_keys({key.strip(): None}, known_keys(), source="--set")
        yaml = require("yaml")
        try:
            values[key.strip()] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"--set {setting}: {text!r} is not a YAML value; quote it") from None
    return values
