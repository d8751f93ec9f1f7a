"""`course-lib tune`: find good values for the keys of a config."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from course_lib.base import read_yaml, to_json
from course_lib.cli.common import GOOD, INTERRUPTED, NO, add_config_options, complain, config_from

DESCRIPTION = """\
Try values for the keys of a config and keep the best. Each trial trains a fresh model for the same number of
steps; a pruner ends those that fall behind. The same command again continues the search, and the same command in
another shell joins in (with OMP_NUM_THREADS=1 each, so that they share the processor).

examples:
  course-lib tune --data reviews.csv
  course-lib tune --data reviews.csv --trials 40 --search learning_rate=log:1e-4..1e-2 --search d_model=choice:32,64
  course-lib tune --data reviews.csv --space space.yaml    with lines such as num_layers: int:1..4"""


def add(commands: Any) -> None:
    layout = argparse.RawDescriptionHelpFormatter
    words = "search for good hyperparameters"
    tune = commands.add_parser("tune", help=words, formatter_class=layout, description=DESCRIPTION)
    add_config_options(tune)
    option = tune.add_argument
    option("--out", metavar="DIR", default="runs/tuning", help="the study's folder (default: %(default)s)")
    option("--space", metavar="FILE.yaml", help="what to search; by default what matters most")
    option("--search", metavar="KEY=RANGE", action="append", default=[], help="one key; wins over --space")
    option("--sampler", choices=("tpe", "random", "grid"), default="tpe", help="default: %(default)s")
    option("--pruner", choices=("median", "halving", "none"), default="median", help="default: %(default)s")
    option("--trials", type=int, metavar="N", help="default: 20, or the grid, if no other budget is given")
    option("--max-total-steps", type=int, metavar="N", help="steps of all trials together")
    option("--minutes", type=float, metavar="M", help="begin no trial after so many minutes")
    tune.set_defaults(run=_tune)


def _tune(arguments: argparse.Namespace) -> int:
    from course_lib.tuning import default_space, parse_searches

    config = config_from(arguments)
    texts = read_yaml(arguments.space) if arguments.space else {}
    texts = {**texts, **parse_searches(arguments.search)} or default_space(config)
    from course_lib.tuning import Search, tune

    options = ("sampler", "pruner", "trials", "max_total_steps", "minutes")
    values = {name: getattr(arguments, name) for name in options}
    try:
        study = tune(Search(config=config, out=Path(arguments.out), texts=texts, **values))
    except KeyboardInterrupt:
        return complain(f"interrupted; the same command continues the search in {arguments.out}", INTERRUPTED)
    print(to_json(study) if arguments.json else _summary(study, arguments.out))
    return GOOD if study["best"] else NO


def _summary(study: dict[str, Any], out: str) -> str:
    from course_lib.base import cell, duration

    spent, best = study["spent"], study["best"]
    told = f"{spent['trials']} trials ({spent['complete']} complete, {spent['pruned']} pruned), "
    told += f"{spent['steps']:,} steps, {duration(spent['seconds'])}; report: {out}/tuning.html"
    if best is None:
        return f"no trial came to its end\n{told}"
    values = ", ".join(f"{key} {cell(value)}" for key, value in best["params"].items())
    return (
        f"best: trial {best['number']}, validation {study['monitor']} {best['value']:.4g} with {values}\n{told}\n"
        f"train it: course-lib train --config {out}/best.yaml --out runs/best"
    )
