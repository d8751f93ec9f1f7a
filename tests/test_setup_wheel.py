"""The wheel: what it carries, and what it does in an environment of its own, far from the checkout."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.running_course import START_PAGE, course, start_command, user_env


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return user_env(tmp_path)


@pytest.fixture(scope="module")
def project_copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git knows or would take, apart, so that building leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def build(folder: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder / "out")]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next((folder / "out").glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(project_copy: Path) -> Path:
    return build(project_copy, "wheel")


def test_wheel_and_sdist_carry_the_same_and_all_of_it(root: Path, project_copy: Path, tmp_path: Path) -> None:
    wheel = names_in(build(project_copy, "wheel"))
    release = root / "notebooks" / "release"
    carried = {f"autograder/release/{path.relative_to(release)}" for path in release.rglob("*.ipynb")}
    assert carried and carried <= wheel
    assert {"course_lib/py.typed", "autograder/py.typed"} <= wheel
    assert {"course_lib/data/corpus.zip", "course_lib/data/corpus_licences.txt"} <= wheel
    quizzes = {str(path.relative_to(root)) for path in root.glob("autograder/lessons/*/quiz.json")}
    assert quizzes <= wheel
    assert not any(
        name.startswith(("tests/", "tools/", "bootstrap/", "notebooks/", "examples/", "build/"))
        for name in wheel
    )

    with tarfile.open(build(project_copy, "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    assert names_in(build(next(tmp_path.iterdir()), "wheel")) == wheel


@pytest.mark.further
def test_the_wheel_starts_the_course_elsewhere(wheel: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """In an empty environment that borrows the dependencies of this one (they are gigabytes), and nothing of
    the checkout: not its packages, not its folder."""
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
    )
    here = Path(sys.prefix)
    borrowed = next(here.glob("lib/python3.*/site-packages"))
    site = next(home.glob("lib/python3.*/site-packages"))
    # An ordinary path line: the borrowed folder's own .pth files, and so the editable checkout, stay unread.
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    for folder in ("share", "etc"):
        (home / folder).symlink_to(here / folder)

    folder = tmp_path / "learner"
    with course(start_command(python, folder), {**env, "PYTHONPATH": ""}) as running:
        assert running.ask(f"/api/contents/{START_PAGE}")["content"]["cells"]
        assert running.ask(f"/lab/tree/{START_PAGE}")
    assert (folder / START_PAGE).read_bytes() == (site / "autograder/release" / START_PAGE).read_bytes()

    done = subprocess.run([home / "bin" / "workbook", "test"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "in the project's checkout" in done.stderr
    done = subprocess.run([home / "bin" / "workbook", "build"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


COURSE_ALONE = (
    "ipywidgets",
    "jupyterlab",
    "jupytext",
    "nbgrader",
    "notebook",
    "pytest",
    "scipy",
    "tensorboard",
)


def environment_with(wheel: Path, home: Path, extra: str = "") -> Path:
    """A fresh environment with the wheel and all that it asks for, by pip's own settings; returns its Python."""
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    constraints = Path(__file__).resolve().parent.parent / "constraints.txt"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "-c", str(constraints)]
    done = subprocess.run([*pip, f"{wheel}{extra}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return python


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_base_alone_trains_a_table(wheel: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """Really installed, nothing borrowed: what the library imports is what it asks for."""
    python = environment_with(wheel, tmp_path / "env")
    env |= {"PYTHONPATH": "", "COURSE_LIB_CACHE": str(tmp_path / "cache")}

    def ask(command: str, *args: str) -> subprocess.CompletedProcess[str]:
        script = [str(python.with_name(command)), *args]
        return subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300)

    site = next((tmp_path / "env").glob("lib/python3.*/site-packages"))
    assert not [name for name in COURSE_ALONE if (site / name).exists()]

    rows = [f"{taste} soup number {i},{taste}" for i in range(60) for taste in ("good", "bad")]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    done = ask("course-lib", "train", "--data", "t.csv", "--out", "run", "--set", "max_epochs=1")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "finished"
    version = record["environment"]["packages"]["training-workbook"]
    assert ask("course-lib", "--version").stdout == f"course-lib {version}\n"
    assert (tmp_path / "run" / "report.html").exists() and not (tmp_path / "run" / "tensorboard").exists()
    assert ask("course-lib", "predict", "run", "good soup").returncode == 0

    refused = ask("course-lib", "train", "--data", "t.csv", "--out", "b", "--set", "trackers=tensorboard")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert 'pip install "training-workbook[tensorboard]"' in refused.stderr

    assert ask("workbook", "--version").stdout == f"workbook {version}\n"
    for verb in (["progress"], ["start", "--no-browser"], ["doctor"]):
        done = ask("workbook", *verb)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
        assert 'pip install "training-workbook[course]"' in done.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_extra_course_starts_jupyterlab(wheel: Path, tmp_path: Path, env: dict[str, str]) -> None:
    python = environment_with(wheel, tmp_path / "env", "[course]")
    with course(start_command(python, tmp_path / "learner"), {**env, "PYTHONPATH": ""}) as running:
        assert running.ask(f"/api/contents/{START_PAGE}")["content"]["cells"]
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=60)
    assert running.process.returncode == 0
