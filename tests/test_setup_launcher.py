"""workbook.py itself, before anything is installed, and the gate's script."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.environment import MARKER, is_ready
from bootstrap.packages import explain

OLD_PYTHONS = sorted(
    str(path)
    for folder in (Path("/usr/bin"), Path("/usr/local/bin"), *Path.home().glob(".pyenv/versions/[23].*/bin"))
    for path in folder.glob("python[23].*")
    if re.fullmatch(r"python(2\.7|3\.([6-9]|10))", path.name)
)


@pytest.fixture
def bare(root: Path, tmp_path: Path) -> Path:
    """workbook.py with bootstrap and an empty project: it could not install even if it tried."""
    shutil.copy(root / "workbook.py", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    shutil.copytree(root / "bootstrap", tmp_path / "bootstrap", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def launch(python: str, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [python, str(folder / "workbook.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def test_parses_on_the_oldest_python_that_it_speaks_to(root: Path) -> None:
    ast.parse((root / "workbook.py").read_text(), feature_version=(3, 6))


@pytest.mark.skipif(not OLD_PYTHONS, reason="no Python older than 3.11 on this machine")
def test_an_old_python_is_told_so_in_one_line(bare: Path) -> None:
    for python in OLD_PYTHONS:
        done = launch(python, bare, "start")
        assert done.returncode == 2, done
        assert len(done.stderr.splitlines()) == 1
        assert "needs Python 3.11 or newer" in done.stderr


def test_help_installs_nothing(bare: Path) -> None:
    for args in ((), ("--help",), ("help",)):
        done = launch(sys.executable, bare, *args)
        assert done.returncode == 0 and "start" in done.stdout and "test" in done.stdout
    assert not (bare / ".venv").exists()


def test_a_misspelt_verb_installs_nothing(bare: Path) -> None:
    done = launch(sys.executable, bare, "strat")
    assert done.returncode == 2
    assert "no verb 'strat'" in done.stderr and "start" in done.stderr
    assert not (bare / ".venv").exists()


def test_a_python_without_ensurepip_names_the_debian_package(bare: Path) -> None:
    # What Debian's python3 looks like without python3-venv: the module cannot be found.
    script = (
        "import runpy, sys; sys.modules['ensurepip'] = None; sys.argv = ['workbook.py', 'start']; "
        f"sys.path.insert(0, {str(bare)!r}); runpy.run_path({str(bare / 'workbook.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"apt install python{version}-venv" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_launcher_and_the_command_know_the_same_verbs(root: Path) -> None:
    namespace: dict[str, object] = {"__name__": "workbook", "__file__": str(root / "workbook.py")}
    exec((root / "workbook.py").read_text(), namespace)
    shown = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "--help"], capture_output=True, text=True, cwd=root
    ).stdout
    verbs = re.findall(r"^    ([a-z]+)(?: |$)", shown, re.MULTILINE)  # a long name has its text below
    assert verbs and set(verbs) == set(namespace["VERBS"])  # type: ignore[call-overload]


def test_the_gate_is_a_sound_script(root: Path) -> None:
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o100
    assert subprocess.run(["bash", "-n", script]).returncode == 0


@pytest.mark.parametrize(
    ("setting", "cure"),
    [
        (("HTTPS_PROXY", "http://127.0.0.1:9"), "unset HTTPS_PROXY"),
        (("PIP_INDEX_URL", "https://no-such-host.invalid/simple"), "connect this machine"),
    ],
    ids=["a proxy that does not answer", "no network"],
)
def test_what_stops_pip_is_named_with_its_cure(setting: tuple[str, str], cure: str, tmp_path: Path) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-cache-dir", "--retries=1", "no-such-package-of-ours"],
        env={**kept, "PIP_CONFIG_FILE": os.devnull, setting[0]: setting[1]},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    told = explain(done.stdout)
    assert cure in told and "\n" not in told, done.stdout


def test_a_set_up_by_an_earlier_version_is_done_again(root: Path, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path)
    (tmp_path / MARKER).parent.mkdir()
    (tmp_path / MARKER).write_text('{"python": "3.11.0", "extra": "course"}', encoding="utf-8")
    assert not is_ready(tmp_path, "course")
