"""`course-lib bench`: what each good habit gains on the user's own data."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.cli.common import GOOD, add_config_options, config_from
from course_lib.runs import AUTO


def add(commands: Any) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure each good habit on your data",
        description="Climb from the naive loop to an efficient one, one change at a time, each timed against the "
        "way before it in interleaved blocks on the same texts of your data. Takes a minute or two.",
    )
    add_config_options(bench)
    bench.add_argument("--out", metavar="DIR", help="for bench.json and bench.html (default: runs/bench-…)")
    bench.add_argument(
        "--blocks", type=int, default=5, help="paired measurements of each change (default: 5)"
    )
    bench.set_defaults(run=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    config = config_from(arguments)
    if arguments.blocks < 1:
        raise UserError(f"--blocks must be at least 1, got {arguments.blocks}")
    if config.task != "classification" or config.hf_model or config.model in ("ngrams", "joined"):
        raise UserError("bench measures the library's own transformer: leave out task, hf_model and model")
    size = None if config.micro_batch_size == AUTO else config.micro_batch_size
    config = dataclasses.replace(config, model="transformer", micro_batch_size=size)
    from course_lib.base import atomic_write_text, environment, hardware, render, resolve_device, to_json
    from course_lib.runs import RunFolder, load_data
    from course_lib.tuning import climb

    folder = RunFolder(Path(arguments.out or time.strftime("runs/bench-%Y-%m-%d-%H%M%S")))
    data = load_data(config, folder)
    rows = climb(config, data.train, blocks=arguments.blocks)
    result = {"rows": rows, "data": {"num_train": len(data.train), "fingerprint": data.fingerprint}}
    result |= {"config": config.to_dict(), "device": str(resolve_device(config.device)[0])}
    result |= {"environment": environment(), "hardware": hardware()}
    atomic_write_text(folder.directory / "bench.json", to_json(result) + "\n")
    atomic_write_text(folder.directory / "bench.html", render("bench.html", **result))
    print(to_json(result) if arguments.json else f"{_table(rows)}\nreport: {folder.directory / 'bench.html'}")
    return GOOD


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'':<41}{'samples/s':>10}{'over naive':>12}  speedup over the way before"]
    for row in rows:
        says = f"not measured: {row.get('obstacle')}"
        if "over_naive" in row:
            says = f"{row['samples_per_sec']:>10,.0f}{row['over_naive']:>11.2f}×"
            if gain := row.get("speedup"):
                says += f"{gain['estimate']:>9.2f}×"
                says += (
                    f" ({gain['low']:.2f} to {gain['high']:.2f})" if gain["low"] else ""
                )  # not from 1 block
            says += "" if row["is_kept"] else ": left out"
        lines.append(f"{row['change']:<41}{says}")
    return "\n".join(lines)
