"""What docs/course_lib.md shows runs as it stands, in its order: commands, in a folder with a reviews.csv; Python."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.made_csv import make_csv
from tests.course_lib.blocks import run_blocks

GUIDE = Path(__file__).parents[2] / "docs" / "course_lib.md"
QUICK = {"bench": ["--blocks", "1"], "train": ["--set", "max_steps=12"], "tune": ["--set", "max_steps=12"]}


def commands():
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(1200)
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
    assert seen == {"train", "bench", "compare", "tune", "dashboard", "evaluate", "predict", "export"}
    runs = tmp_path / "runs"
    assert (runs / "plan" / "schedule.svg").exists()
    assert (runs / "bench" / "bench.html").exists()
    assert (runs / "tuning" / "best.yaml").exists()
    assert (runs / "dashboard.html").exists()
    assert list((runs / "final-1" / "exports").glob("*.safetensors"))


def section(title):
    return GUIDE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_a_model_of_your_own_trains_as_the_guide_says():
    made = run_blocks(GUIDE, section("A model of your own"))
    assert made["evaluate"](made["model"], made["loader"])["accuracy"] > 0.5
    judged = made["evaluate"](made["network"], made["pairs"], loss=made["squared_error"])
    assert judged["loss"] < 2.0
    assert {"loss", "grad_norm", "samples_per_sec", "data_wait_fraction"} <= made["records"][0].keys()
    assert callable(made["next_token"])


def test_a_frame_and_a_predictor_work_as_the_guide_says(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    make_csv(tmp_path / "reviews.csv", num_rows=120)
    monkeypatch.chdir(tmp_path)
    for title in ("Your table", "From Python"):
        made = run_blocks(GUIDE, section(title))
        assert 0.0 <= made["record"]["validation"]["macro_f1"] <= 1.0


def test_links_of_the_pages_lead_somewhere():
    """To a heading of the same page, or to a file."""
    for page in GUIDE.parent.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if not target.startswith(("http:", "https:")):
                file, _, anchor = target.partition("#")
                other = page.parent / file if file else page
                assert other.exists(), f"{page.name}: {target}"
                if anchor:
                    titles = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
                    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                    assert anchor in anchors, f"{page.name}: {target}"
