"""What docs/course_lib.md shows runs as it stands, in its order: commands, in a folder with a reviews.csv; Python."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.made_csv import make_csv

GUIDE = Path(__file__).parents[2] / "docs" / "course_lib.md"
QUICK = {"bench": ["--blocks", "1"], "train": ["--set", "max_steps=12"], "tune": ["--set", "max_steps=12"]}


def commands():
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_of_the_guide_runs(tmp_path):
    make_csv(tmp_path / "reviews.csv", num_rows=300)
    environment = os.environ | {"COURSE_LIB_CACHE": str(tmp_path / "cache")}
    seen = set()
    for program, verb, *rest in commands():
        assert program == "course-lib"
        seen.add(verb)
        command = [sys.executable, "-m", "course_lib", verb, *rest, *QUICK.get(verb, [])]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{shlex.join([verb, *rest])}\n{done.stderr}"
    assert seen == {"train", "bench", "compare", "tune", "dashboard", "predict", "export"}
    runs = tmp_path / "runs"
    assert (runs / "plan" / "schedule.svg").exists()
    assert (runs / "bench" / "bench.html").exists()
    assert (runs / "tuning" / "best.yaml").exists()
    assert (runs / "dashboard.html").exists()
    assert list((runs / "final-1" / "exports").glob("*.safetensors"))


def test_a_model_of_your_own_trains_as_the_guide_says(capsys):
    section = GUIDE.read_text(encoding="utf-8").partition("## A model of your own\n")[2].partition("\n## ")[0]
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, namespace)
    accuracy, error = map(float, capsys.readouterr().out.split())
    assert accuracy > 0.5 and error < 2.0
    assert {"loss", "grad_norm", "samples_per_sec", "data_wait_fraction"} <= namespace["records"][0].keys()
    assert callable(namespace["next_token"])
