"""Make, recognise and repair the checkout's `.venv`.

The set-up may be killed at any moment. So its marker is removed first and written last, and a set-up without a
valid marker compares every installed distribution with its own RECORD and forgets a damaged one, which makes pip
install it again.
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


def ensure_environment(root: Path, *, dev: bool, thorough: bool = False) -> Path:
    """Return the Python of a complete `.venv` in `root`, making or repairing it first where needed.

    `dev` adds what the tests need. `thorough` compares the size of every installed file with its record (about a
    second). Raises SetupError with one line that names the fix.
    """
    env = root / ".venv"
    if is_ready(root, env, dev=dev) and not (thorough and damaged(site_packages(env))):
        return env_python(env)
    with only_one(root) as lock:
        if is_ready(root, env, dev=dev) and not thorough:  # another set-up finished while this one waited
            return env_python(env)
        began = time.monotonic()
        dev = dev or bool(read_marker(env).get("dev"))  # a `start` after a `test` keeps the test tools
        (env / MARKER).unlink(missing_ok=True)
        make_venv(env)
        for path in damaged(site_packages(env)):
            say(f"  {path.stem} is not complete: installing it again")
            shutil.rmtree(path)
        packages.install(root, env_python(env), dev=dev, log=env / "setup.log", keep_open=lock)
        marker = {"fingerprint": fingerprint(root, env), "dev": dev, "entries": entries(site_packages(env))}
        (env / MARKER).write_text(json.dumps(marker), encoding="utf-8")
        say(f"Set-up finished in {time.monotonic() - began:.0f} s.")
    return env_python(env)


def env_python(env: Path) -> Path:
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site_packages(env: Path) -> Path:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return env / ("Lib" if os.name == "nt" else f"lib/{version}") / "site-packages"


def fingerprint(root: Path, env: Path) -> str:
    """Hash of all that decides what must be installed. A moved checkout counts: its `.venv` has old paths."""
    digest = hashlib.sha256(f"{sys.version}\n{sys.platform}\n{env}\n".encode())
    for name in ("pyproject.toml", "constraints.txt", "setup.py"):
        digest.update((root / name).read_bytes() if (root / name).exists() else b"-")
    return digest.hexdigest()


def read_marker(env: Path) -> dict:
    try:
        return json.loads((env / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def is_ready(root: Path, env: Path, *, dev: bool) -> bool:
    """Whether a finished set-up fits what is wanted now and, at a quick look, is still there."""
    marker = read_marker(env)
    if marker.get("fingerprint") != fingerprint(root, env) or (dev and not marker["dev"]):
        return False
    if not (env_python(env).exists() and (env / "pyvenv.cfg").exists() and site_packages(env).is_dir()):
        return False
    now = entries(site_packages(env))  # more is fine: a learner may install something for themselves
    return all(now.get(name, -1) >= num for name, num in marker["entries"].items())


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


def damaged(site: Path) -> list[Path]:
    """The `.dist-info` folders of distributions that are not wholly there.

    RECORD lists every file of a distribution with its size; files that an installation made itself have none.
    """

    def is_whole(dist_info: Path) -> bool:
        try:  # not importlib.metadata: from Python 3.12 on it leaves out the files that are missing
            with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
                rows = [(site / name, int(size)) for name, _, size in csv.reader(file) if size]
            return (dist_info / "METADATA").exists() and all(
                path.stat().st_size == size for path, size in rows
            )
        except (OSError, ValueError):
            return False

    return [path for path in site.glob("*.dist-info") if not is_whole(path)]


def make_venv(env: Path) -> None:
    """Make `.venv`, or keep the one that is there if it is of this Python and its pip runs."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise SetupError(
                f"this Python comes without the module {module}; on Debian and Ubuntu install it with: "
                f"apt install python{version}-venv"
            )
    same = f"import sys, pip._internal.cli.main; assert sys.version_info[:2] == {sys.version_info[:2]}"
    # Without pyvenv.cfg the link in `.venv` is the Python of the system.
    is_made = (env / "pyvenv.cfg").exists() and env_python(env).exists()
    if is_made and subprocess.run([env_python(env), "-c", same], capture_output=True).returncode == 0:
        return
    say(f"Making {env} with Python {sys.version.split()[0]} …")
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=os.name != "nt").create(env)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"could not make {env} ({error}); make room there or give yourself write access"
        ) from error


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
