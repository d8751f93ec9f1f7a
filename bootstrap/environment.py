"""Make, recognise and repair the checkout's `.venv`.

The set-up may be killed at any moment. So its marker is written last, and a set-up without a valid marker
believes nothing: every installed distribution is compared with its own RECORD, and a damaged one is forgotten,
which makes pip install it again.
"""

import csv
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bootstrap import packages
from bootstrap.console import SetupError, say

MARKER = ".workbook-setup.json"
#: What the installed state depends on, besides the Python version and the place of the checkout.
INPUTS = ("pyproject.toml", "constraints.txt", "setup.py")


def ensure_environment(root: Path, *, dev: bool, thorough: bool = False) -> Path:
    """Return the Python of a complete `.venv` in `root`, making or repairing it first where needed.

    `dev` adds what the tests need. `thorough` compares every installed file with its record even when the
    marker says that all is well (about a second). Raises SetupError with one line that names the fix.
    """
    env = root / ".venv"
    python = env_python(env)
    wanted = fingerprint(root, env)
    marker = read_marker(env)
    if is_ready(marker, env, wanted, dev=dev) and not (thorough and damaged(site_packages(env))):
        return python

    with only_one(root) as lock:
        marker = read_marker(env)  # another set-up may have finished while this one waited
        if is_ready(marker, env, wanted, dev=dev) and not thorough:
            return python
        began = time.monotonic()
        dev = dev or bool(marker.get("dev"))  # a `start` after a `test` keeps the test tools
        (env / MARKER).unlink(missing_ok=True)
        make_venv(env)
        forget_damaged(site_packages(env))
        packages.install(root, python, dev=dev, log=env / "setup.log", keep_open=lock)
        write_marker(env, wanted, dev=dev)
        say(f"Set-up finished in {time.monotonic() - began:.0f} s.")
    return python


def env_python(env: Path) -> Path:
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site_packages(env: Path) -> Path:
    if os.name == "nt":
        return env / "Lib" / "site-packages"
    return env / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def fingerprint(root: Path, env: Path) -> str:
    """Hash of all that decides what must be installed. A moved checkout counts: its `.venv` has old paths."""
    digest = hashlib.sha256(f"{sys.version}\n{sys.platform}\n{env}\n".encode())
    for name in INPUTS:
        path = root / name
        digest.update(path.read_bytes() if path.exists() else b"-")
    return digest.hexdigest()


def read_marker(env: Path) -> dict:
    try:
        content = json.loads((env / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_marker(env: Path, wanted: str, *, dev: bool) -> None:
    content = {"fingerprint": wanted, "dev": dev, "entries": entries(site_packages(env))}
    half = env / (MARKER + ".half")
    half.write_text(json.dumps(content), encoding="utf-8")
    half.replace(env / MARKER)


def entries(site: Path) -> dict[str, int]:
    """Top-level names in site-packages with the number of things in them: cheap enough to compare at each start.

    `__pycache__` is left out at both levels, because it comes and goes.
    """
    found = {}
    for entry in site.iterdir():
        if entry.name != "__pycache__":
            inside = entry.iterdir() if entry.is_dir() else ()
            found[entry.name] = sum(path.name != "__pycache__" for path in inside)
    return found


def is_ready(marker: dict, env: Path, wanted: str, *, dev: bool) -> bool:
    if marker.get("fingerprint") != wanted or (dev and not marker.get("dev")):
        return False
    try:
        now = entries(site_packages(env))
    except OSError:
        return False
    # More is fine: a learner may install something for themselves.
    recorded = marker.get("entries", {})
    is_python = env_python(env).exists() and (env / "pyvenv.cfg").exists()
    return is_python and all(now.get(name, -1) >= num for name, num in recorded.items())


def make_venv(env: Path) -> None:
    """Make `.venv`, or keep the one that is there if its Python and its pip run."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise SetupError(
                f"this Python comes without the module {module}; on Debian and Ubuntu install it with: "
                f"apt install python{version}-venv"
            )
    if runs(env, "-c", f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]}"):
        if runs(env, "-m", "pip", "--version"):
            return
        say("Repairing pip in .venv …")
        for path in site_packages(env).glob("pip*"):
            if path.name == "pip" or path.name.endswith(".dist-info"):
                shutil.rmtree(path)
        if runs(env, "-m", "ensurepip", "--upgrade") and runs(env, "-m", "pip", "--version"):
            return
    say(f"Making {env} with Python {sys.version.split()[0]} …")
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=os.name != "nt").create(env)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"could not make {env} ({error}); make room there or give yourself write access"
        ) from error


def runs(env: Path, *args: str) -> bool:
    python = env_python(env)
    if not python.exists() or not (env / "pyvenv.cfg").exists():
        return False
    try:
        return subprocess.run([python, *args], capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def damaged(site: Path) -> list[Path]:
    """The `.dist-info` folders of distributions that are not wholly there, and pip's own leftovers (`~…`).

    RECORD lists every file of a distribution with its size; files that an installation made itself have none.
    """
    return [path for path in site.glob("*.dist-info") if not is_whole(site, path)] + list(site.glob("~*"))


def is_whole(site: Path, dist_info: Path) -> bool:
    try:
        with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
            for name, _, size in csv.reader(file):
                if size and (site / name).stat().st_size != int(size):
                    return False
    except (OSError, ValueError):
        return False
    return (dist_info / "METADATA").exists()


def forget_damaged(site: Path) -> None:
    for path in damaged(site):
        say(f"  {path.name.removesuffix('.dist-info')} is not complete: installing it again")
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def only_one(root: Path) -> Iterator[int | None]:
    """Let one set-up at a time work in this checkout. Yields the lock's descriptor for pip to inherit: a pip
    that outlives a killed set-up keeps the lock, so that the next one waits instead of writing beside it."""
    try:
        import fcntl
    except ImportError:  # Windows: two set-ups at once are not guarded against there
        yield None
        return
    with (root / "workbook.py").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another set-up is at work in this folder; waiting for it …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
