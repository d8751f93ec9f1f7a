"""With torch and NumPy alone all runs that needs no more; what does says so in one line, and is no fault of ours."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.benchmarks.made_csv import make_csv
from tests.course_lib.alone import PACKAGES, Alone, needed
from tests.course_lib.scripts.small import SCRIPTS

LIBRARY = "training-workbook"
#: Distribution -> the module by which it is imported, where that is called otherwise.
MODULES = {"pyyaml": "yaml"}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(tmp_path_factory.mktemp("alone"))


def _brought_by_the_library() -> set[str]:
    """Modules of what the library depends on, without what torch and NumPy bring themselves."""
    wanted = map(Requirement, importlib.metadata.requires(LIBRARY) or ())
    names = {each.name.lower() for each in wanted if each.marker is None}
    return {MODULES.get(name, name) for name in names - {name.lower() for name in needed(PACKAGES)}}


def test_there_is_nothing_else(alone: Alone) -> None:
    others = sorted({*_brought_by_the_library(), "autograder", "optuna", "pytest", "sklearn", "transformers"})
    assert {"matplotlib", "tokenizers", "yaml"} <= set(others)
    code = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    done = alone.run("-c", code, "torch", "numpy", "course_lib", *others)
    assert done.stdout.strip() == "['torch', 'numpy', 'course_lib']", done.stderr


def test_every_name_of_every_room_is_there(alone: Alone) -> None:
    code = """
import importlib, pkgutil
import course_lib
for module in pkgutil.walk_packages(course_lib.__path__[:1], "course_lib."):
    if not module.name.endswith("__main__"):
        found = importlib.import_module(module.name)
        for name in getattr(found, "__all__", ()) if module.ispkg else ():
            getattr(found, name)
print(len(course_lib.__all__), all(getattr(course_lib, name) for name in course_lib.__all__))
"""
    done = alone.run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "True"


@pytest.fixture(scope="module")
def found(alone: Alone) -> dict[str, dict]:
    """What came of training, judging, checkpoints, counts and clocks."""
    done = alone.run(SCRIPTS / "alone.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_training_judging_checkpoints_counts_and_clocks_run(found: dict[str, dict]) -> None:
    assert found["pairs"]["is_resumed"]
    assert found["pairs"]["scores"]["accuracy"] > 0.5
    assert found["texts"]["counts"] == [1, 0]
    assert sum(found["texts"]["widths"]) > 0
    assert found["measured"] == {"is_faster": True, "peak": 360_000, "is_measured": True}


@pytest.mark.further
def test_what_else_is_installed_changes_no_weight_no_score_and_no_count(found: dict, tmp_path: Path) -> None:
    here = subprocess.run(
        [sys.executable, SCRIPTS / "alone.py"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(here.stdout.splitlines()[-1]) == found


# Each of these is tried in one process; what it raises is shown.
TRIED = {
    'course_lib.plot_schedule("cosine", 1e-3, 100)': ("matplotlib", ""),
    'course_lib.train_tokenizer(["a text"])': ("tokenizers", ""),
    'course_lib.data.load_tokenizer("run/tokenizer.json")': ("tokenizers", ""),
    "course_lib.docstring_store(progress=False)": ("platformdirs", ""),
    'course_lib.run_training(config, "runs/new", progress=False)': ("yaml", ""),
    'course_lib.Predictor.load("run")': ("yaml", ""),
    'course_lib.evaluate_run("run", "reviews.csv")': ("yaml", ""),
    'course_lib.export_run("run", "safetensors")': ("yaml", ""),
    'course_lib.make_optimizer(model, "lamb")': ("pytorch_optimizer", "optimizers"),
    'course_lib.make_optimizer(model, "adamw-8bit")': ("bitsandbytes", "optimizers"),
    "course_lib.tune(course_lib.Search(config=config, out=Path('t'), texts={'learning_rate': 'log:1e-3..1e-2'}))": (
        "optuna",
        "tune",
    ),
    'course_lib.load_table("reviews.parquet")': ("pyarrow", "parquet"),
    "available_memory_bytes(torch.device('cpu'))": ("psutil", ""),
}
TRY = """
import json, sys
from pathlib import Path
import torch
import course_lib, course_lib.data
from course_lib.training.micro_batch import available_memory_bytes

config, model = course_lib.TrainConfig(data="reviews.csv", max_steps=2), torch.nn.Linear(2, 2)
for code in json.load(open(sys.argv[1])):
    try:
        eval(code)
        print(json.dumps(["nothing", ""]))
    except BaseException as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""
COMMANDS = {
    "train --data reviews.csv --out runs/new": "yaml",
    "train --data reviews.csv --out runs/new --set max_steps=2": "yaml",
    "train --data reviews.csv --out runs/new --dry-run": "platformdirs",
    "tune --data reviews.csv --out tuning --set learning_rate=log:1e-3..1e-2": "yaml",
    "bench --data reviews.csv": "tokenizers",
    "evaluate run --data reviews.csv": "yaml",
    "predict run hello": "yaml",
    "export run --format safetensors": "yaml",
}
# `main` for each line, as the command does it; what is on stderr afterwards is told.
COMMAND = """
import contextlib, io, json, sys
from course_lib.cli.main import main
for line in json.load(open(sys.argv[1])):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main(line.split())
    print(json.dumps([code, errors.getvalue()]))
"""


@pytest.fixture(scope="module")
def with_a_run(alone: Alone) -> Alone:
    """With a table and a run folder, as far as each is read before something is missing."""
    make_csv(alone.folder / "reviews.csv", num_rows=60)
    (alone.folder / "reviews.parquet").write_bytes(b"PAR1")
    run = alone.folder / "run"
    run.mkdir()
    (run / "config.yaml").write_text("data: reviews.csv\n", encoding="utf-8")
    (run / "tokenizer.json").write_text("{}", encoding="utf-8")
    return alone


def _told(alone: Alone, code: str, lines: dict) -> dict:
    """What the code in that Python says of each line."""
    (alone.folder / "lines.json").write_text(json.dumps([*lines]), encoding="utf-8")
    done = alone.run("-c", code, "lines.json")
    assert done.returncode == 0, done.stderr
    return dict(zip(lines, map(json.loads, done.stdout.splitlines()), strict=True))


def test_what_needs_more_names_the_package_and_the_extra(with_a_run: Alone) -> None:
    told = _told(with_a_run, TRY, TRIED)
    for code, (package, extra) in TRIED.items():
        wanted = f'"{LIBRARY}[{extra}]"' if extra else LIBRARY
        kind, said = told[code]
        assert kind == "UserError", f"{code}: {said}"
        said = said.removeprefix("reviews.parquet: ")
        assert said == f"this needs the package {package}: pip install {wanted}", code


def test_a_command_that_needs_more_says_it_in_one_line(with_a_run: Alone) -> None:
    told = _told(with_a_run, COMMAND, COMMANDS)
    for line, package in COMMANDS.items():
        status, said = told[line]
        said = re.sub(r"^.*(Reading|Data).*\n", "", said)
        assert (status, said) == (
            2,
            f"course-lib: this needs the package {package}: pip install {LIBRARY}\n",
        ), line


def test_what_no_command_knows_that_it_needs_is_no_fault_of_ours(alone: Alone) -> None:
    code = """
from course_lib.cli import info, main
def run(arguments):
    import a_package_of_another
info._info = run
raise SystemExit(main.main(["info"]))
"""
    done = alone.run("-c", code)
    assert done.returncode == 2
    assert done.stderr == (
        "course-lib: the package a_package_of_another is not installed: pip install a_package_of_another\n"
    )


def test_info_tells_what_is_missing(alone: Alone) -> None:
    done = alone.run("-m", "course_lib", "info")
    assert done.returncode == 0, done.stderr
    assert "tokenizers missing" in done.stdout
    assert re.search(r"^cache .*this needs the package platformdirs", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_two_processes_train_one_model(alone: Alone, root: Path) -> None:
    command = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = alone.run(*command, root / "examples" / "two_processes.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("512 samples")
