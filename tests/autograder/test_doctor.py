"""Each look of `workbook doctor` on a set-up that is really broken; and its cure, taken by its word, heals it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from autograder.cli.doctor import installed, jupyter, machine, places
from autograder.cli.doctor.findings import Found
from autograder.cli.jupyterlab import starting as start
from autograder.engine.calibration import _machine
from autograder.kept.progress_file import progress_path
from tests.autograder.test_calibration import calibration_entry

pytestmark = pytest.mark.skipif(os.name == "nt", reason="typed into a shell that Windows has not")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of their own: nothing of this machine's is read or written."""
    for name in ("WORKBOOK_DIR", "WORKBOOK_DATA", "COURSE_LIB_CACHE", "JUPYTER_PATH", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def take(cure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type the cure into a shell, and take over what it set."""
    show = f'"{sys.executable}" -c "import json, os; print(json.dumps(dict(os.environ)))"'
    done = subprocess.run(["bash", "-c", f"{cure} && {show}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    after = json.loads(done.stdout.splitlines()[-1])
    for name in os.environ.keys() - after.keys():
        monkeypatch.delenv(name)
    for name, value in after.items():
        monkeypatch.setenv(name, value)


def apart(look: str, command: Sequence[str] = ()) -> Found:
    """The look in a process of its own, started by a command if given."""
    code = f"from autograder.cli.doctor import machine, places; print(*{look}(), sep='|')"
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, timeout=120)
    level, text, cure = done.stdout.decode("ascii").strip().split("|")
    return level, text, cure  # type: ignore[return-value]


def heals(look: Callable[[], Found], monkeypatch: pytest.MonkeyPatch, *, names: str) -> None:
    """The look finds what is broken and names it; after its cure it is content."""
    level, text, cure = look()
    assert level != "ok" and names in text, text
    take(cure, monkeypatch)
    level, text, _ = look()
    assert level == "ok", text


def test_a_file_that_hides_a_module(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = home / "training-workbook" / "01_efficient_training_loops"
    lesson.mkdir(parents=True)
    (lesson / "helpers.py").touch()
    assert places.file_names()[0] == "ok"
    (lesson / "random.py").touch()
    (lesson / "torch.py").touch()
    heals(places.file_names, monkeypatch, names="random.py hides Python's module random, and 1 more")


def test_a_pythonpath_that_hides_a_module(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(home))
    assert "PYTHONPATH" not in installed.python()[1]
    (home / "numpy").mkdir()
    (home / "numpy" / "__init__.py").touch()
    level, text, cure = installed.python()
    assert level == "fail" and "numpy" in text
    take(cure, monkeypatch)
    assert "PYTHONPATH" not in installed.python()[1]


def test_a_folder_that_a_cloud_keeps(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = home / "OneDrive - School" / "course"
    kept.mkdir(parents=True)
    (kept / "mine.ipynb").touch()
    monkeypatch.setenv("WORKBOOK_DIR", str(kept))
    heals(places.folder, monkeypatch, names="kept in step with a cloud")
    assert (home / "training-workbook" / "mine.ipynb").exists()


def test_a_folder_on_a_disk_that_is_full(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real small disk, where this user may mount one."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if not shutil.which("mount") or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (small / "course").mkdir()
        (small / "course" / "mine.ipynb").touch()
        monkeypatch.setenv("WORKBOOK_DIR", str(small / "course"))
        heals(places.disk, monkeypatch, names="0.0 GB for your notebooks")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert (home / "workbook-files" / "course" / "mine.ipynb").exists()


def test_a_folder_without_write_access(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = home / "training-workbook"
    closed.mkdir(mode=0o500)
    as_anyone = []
    if os.geteuid() == 0:  # to whom no folder is closed
        if not shutil.which("setpriv"):
            pytest.skip("this user may write everywhere")
        as_anyone = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    heals(lambda: apart("places.write_access", as_anyone), monkeypatch, names=f"cannot write to {closed}")


def test_a_file_where_a_folder_should_be(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("WORKBOOK_DATA", str(home / "file" / "data"))
    heals(places.write_access, monkeypatch, names="progress")


def test_progress_that_another_program_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places.progress() == ("ok", "nothing is recorded yet", "")
    progress_path().parent.mkdir(parents=True)
    hold = (
        "import sqlite3, sys, time; held = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "held.execute('CREATE TABLE t (a)'); held.execute('BEGIN EXCLUSIVE'); "
        "print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(progress_path())], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        try:
            level, text, cure = places.progress()
            assert level == "fail" and "another program holds" in text and cure == f"kill {holder.pid}"
            take(cure, monkeypatch)
            holder.wait(timeout=60)
        finally:
            holder.kill()
    assert places.progress()[0] == "ok"


def test_progress_that_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    progress_path().parent.mkdir(parents=True)
    progress_path().write_bytes(b"no database at all" * 100)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    heals(places.progress, monkeypatch, names="is damaged")
    assert len(list(progress_path().parent.glob("*damaged*"))) == 1


def test_a_package_that_is_not_there_or_does_not_fit(tmp_path: Path) -> None:
    """In an environment of its own, with descriptions of packages alone."""
    descriptions = {
        "training_workbook-1": [
            "present>=2",
            "missing>=3; extra == 'course'",
            "fits",
            "gone; extra == 'dev'",
        ],
        "present-1.5": [],
        "fits-9": ["present>=1", "gone; extra == 'more'"],
    }
    for name, needs in descriptions.items():
        folder = tmp_path / f"{name}.dist-info"
        folder.mkdir()
        lines = [f"Name: {name.split('-')[0]}", f"Version: {name.split('-')[1]}"]
        lines += [f"Requires-Dist: {need}" for need in needs]
        (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines]) + "\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        "from autograder.cli.doctor import installed; print(*installed.packages(), sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    level, text, cure = done.stdout.strip().split("|")
    assert (level, text) == ("fail", "present>=2 is needed, 1.5 is here; missing>=3 is needed, none is here")
    assert cure == f'"{sys.executable}" -m pip install "present>=2" "missing>=3"'


@pytest.mark.slow
def test_an_environment_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "bin" / "python"))
    assert installed.pip()[0] == "fail"
    take(installed.pip()[2], monkeypatch)
    assert installed.pip()[0] in ("ok", "note")  # the one that Python brings may be old


def test_a_proxy_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    heals(jupyter.proxy, monkeypatch, names="a proxy is set")


def test_a_taken_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(start, "FIRST_PORT", taken)
        monkeypatch.setattr(jupyter, "FIRST_PORT", taken)
        level, text, _ = jupyter.port()
    assert level == "ok" and text.startswith(f"{taken} is taken") and f"takes {taken}" not in text


def test_a_kernel_of_another_python(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(home / "other"))
    spec = home / "other" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = ["/no/such/python", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}))
    heals(jupyter.kernel, monkeypatch, names="elsewhere `python3` is another Python: /no/such/python")


@pytest.mark.parametrize(
    ("variable", "value"), [("PYTHONIOENCODING", "cp1252"), ("PYTHONUTF8", "0")], ids=["window", "files"]
)
def test_letters_that_cannot_be_written(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Windows does unasked. The looks run in a process of their own, for Python reads this once."""
    for name in ("PYTHONIOENCODING", "PYTHONUTF8"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    monkeypatch.setenv(variable, value)

    heals(lambda: apart("machine.text"), monkeypatch, names="come out as")


def test_memory_that_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "NEEDED_MEMORY_BYTES", 1 << 60)
    level, text, cure = machine.memory()
    assert level == "note" and "a kernel may be ended" in text and "Shut Down All Kernels" in cure


def test_what_was_calibrated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(home))
    assert machine.calibration()[:2] == ("note", "not yet")
    entry = calibration_entry("1.1", speedup=1.6)
    (home / "calibration.json").write_text(json.dumps({_machine(): {"1.1": entry}}))
    assert machine.calibration() == ("ok", "2026-11-20: 1.1; moved from clock to counts: 1.1", "")
