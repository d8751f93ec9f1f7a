"""What several commands share: the options that make a config, and the output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_lib.base import UserError, check_keys
from course_lib.runs import BUILT_IN_DATA, CHOICES, TrainConfig, known_keys, read_config

GOOD, NO, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """`--data`, `--config`, `--set`, `--json`: the same for every command that trains."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        help=f"a CSV, JSON Lines or Parquet file with the columns text,label; or '{BUILT_IN_DATA}'",
    )
    parser.add_argument("--config", metavar="FILE.yaml", help="values for any of the keys below")
    parser.add_argument(
        *("--set", "-s"),
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value; wins over --config",
    )
    parser.add_argument("--json", action="store_true", help="print JSON alone")


def keys_help() -> str:
    """All keys of a config with their defaults and the other choices, for a command's epilog."""
    defaults = TrainConfig(data=BUILT_IN_DATA).to_dict()
    del defaults["data"]
    lines = []
    for name, value in defaults.items():
        lines.append(f"  {name:<28} {'auto' if value is None else value}".rstrip())
        if others := ", ".join(choice for choice in CHOICES.get(name, ()) if choice != value):
            lines.append(f"  {'':<28}   or {others}")
    return "keys for --set and --config, with their defaults:\n" + "\n".join(lines)


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
    paths = {
        key: str(Path(value).expanduser().absolute())
        for key, value in (("data", config.data), ("hf_model", config.hf_model))
        if value and value != BUILT_IN_DATA
    }
    return TrainConfig(**{**config.to_dict(), **paths})


def complain(message: str, code: int) -> int:
    print(f"course-lib: {message}", file=sys.stderr)
    return code


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`["learning_rate=1e-3"]` -> `{"learning_rate": "1e-3"}`; the values are read as YAML."""
    import yaml

    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write --set key=value, for example --set max_epochs=5")
        check_keys({key.strip(): None}, known_keys(), source="--set")
        try:
            values[key.strip()] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"--set {setting}: {text!r} is not a YAML value; quote it") from None
    return values
