"""Each example ends with the weights of its twin in plain torch, and is as short as the same in Accelerate."""

import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
import torch

from course_lib.training.reproducibility import weights_sha256
from tests.course_lib.scripts.small import SCRIPTS, torchrun
from tests.everyday import first_of

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ACCELERATE = SCRIPTS / "in_accelerate"
NAMES = sorted(path.stem.removesuffix("_plain") for path in EXAMPLES.glob("*_plain.py"))
ALONE = ["image_classifier", "regression", "multi_label", "language_model", "own_table"]
#: The gradients of uneven micro-batches are put right by a factor, which is rounded once more than the twin's divisor.
NOT_TO_THE_BIT = {"multi_label"}


def run(script, folder, *more, check=True):
    """The weights that a program ends with, and what it printed; None for one that was killed."""
    done = subprocess.run(
        [sys.executable, SCRIPTS / "run_example.py", script, folder / script.stem, *map(str, more)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0 or not check, done.stderr
    weights = None if done.returncode else torch.load(folder / f"{script.stem}-0.pt", weights_only=True)
    return weights, done.stdout


def test_every_example_has_a_twin_and_is_listed_in_their_readme():
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert files == {f"{name}{end}.py" for name in NAMES for end in ("", "_plain")}
    assert {*ALONE, "two_processes", "resume"} == {*NAMES}
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in files if f"({name})" not in readme] == []


@pytest.mark.parametrize("name", first_of(ALONE, everyday=2))
def test_an_example_ends_with_the_weights_of_its_twin(name, tmp_path):
    (ours, said), (twins, twin_said) = (run(EXAMPLES / f"{name}{end}.py", tmp_path) for end in ("", "_plain"))
    if name in NOT_TO_THE_BIT:
        for key in twins:
            torch.testing.assert_close(ours[key], twins[key], rtol=1e-4, atol=1e-6)
    else:
        assert weights_sha256(ours) == weights_sha256(twins)
    assert said == twin_said


@pytest.mark.further
def test_two_processes_end_with_the_weights_of_their_twin(tmp_path):
    found, said = {}, {}
    for name in ("two_processes", "two_processes_plain"):
        script, runner = EXAMPLES / f"{name}.py", SCRIPTS / "run_example.py"
        said[name] = torchrun(runner, script, tmp_path / name).stdout
        found |= {
            (name, rank): weights_sha256(torch.load(tmp_path / f"{name}-{rank}.pt", weights_only=True))
            for rank in range(2)
        }
    assert len({*found.values()}) == 1
    assert said["two_processes"] == said["two_processes_plain"] != ""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    weights, said = run(EXAMPLES / "resume_plain.py", folder)
    assert said == "100 steps\n"
    return weights_sha256(weights)


# 14 and 57 are within an epoch of 25 steps, 25 is its last step, 9 is before anything was saved.
@pytest.mark.parametrize(
    "name, kills", first_of([("resume", (14, 57)), ("resume", (9, 25)), ("resume_plain", (14,))])
)
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(name, kills, tmp_path, unbroken):
    for kill_at in kills:
        assert run(EXAMPLES / f"{name}.py", tmp_path, kill_at, check=False)[0] is None
    weights, said = run(EXAMPLES / f"{name}.py", tmp_path)
    assert weights_sha256(weights) == unbroken
    assert ("goes on after step" in said, said.endswith("100 steps\n")) == (True, True)


@pytest.mark.further
def test_resume_unbroken_ends_as_its_twin(tmp_path, unbroken):
    assert weights_sha256(run(EXAMPLES / "resume.py", tmp_path)[0]) == unbroken


def lines_of_code(path):
    """Lines that hold code: neither blank, nor a comment, nor a docstring."""
    idle = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
    }
    found = set()
    with path.open("rb") as file:
        before = tokenize.NEWLINE
        for token in tokenize.tokenize(file.readline):
            is_docstring = token.type == tokenize.STRING and before in idle
            if token.type not in idle and not is_docstring:
                found.update(range(token.start[0], token.end[0] + 1))
            before = token.type
    return len(found)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_no_longer_than_the_same_in_accelerate_and_in_plain_torch(name):
    ours = lines_of_code(EXAMPLES / f"{name}.py")
    assert ours <= lines_of_code(ACCELERATE / f"{name}.py")
    assert ours < lines_of_code(EXAMPLES / f"{name}_plain.py")


@pytest.mark.further
@pytest.mark.parametrize("name", NAMES)
def test_what_stands_for_accelerate_runs(name, tmp_path):
    """Else its length would say nothing."""
    pytest.importorskip("accelerate")
    script = ACCELERATE / f"{name}.py"
    if name == "two_processes":
        torchrun(SCRIPTS / "run_example.py", script, tmp_path / name)
    else:
        run(script, tmp_path)
