"""`python -m tools.make_config_page`: docs/config.md, each key of a config, from `TrainConfig` itself.

Run it after a key was added or its docstring changed: a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from course_lib.base import keys_page
from course_lib.runs import DEFAULT_MONITORS, METRICS, config_keys
from course_lib.training import OPTIMIZERS

TARGET = Path(__file__).parents[1] / "docs" / "config.md"

HEAD = """\
# Every key of a config

What `course-lib train`, `tune` and `bench` take by `--set KEY=VALUE` and in a file by `--config`, and
`TrainConfig(KEY=VALUE)` in Python. `course-lib train --help` and `help(TrainConfig)` say the same. A key that is *not
set* is None in Python and empty in YAML; `--set KEY=` takes a value back. An unknown key is an error that names the
nearest known one.

This page is made from the code by `python -m tools.make_config_page`.

"""


METRICS_HEAD = """
## What a run can be judged by

| `task` | `monitor`: the first is taken where none is set |
|---|---|
"""

OPTIMIZERS_HEAD = """
## The optimizers

| `optimizer` | Where it comes from |
|---|---|
"""


def page() -> str:
    metrics = ""
    for task, names in METRICS.items():
        first = DEFAULT_MONITORS.get(task, "loss")
        metrics += f"| `{task}` | {', '.join([first, *(name for name in names if name != first)])} |\n"
    optimizers = "".join(f"| `{name}` | {entry.about} |\n" for name, entry in OPTIMIZERS.items())
    return HEAD + keys_page(config_keys()) + METRICS_HEAD + metrics + OPTIMIZERS_HEAD + optimizers


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(TARGET)
