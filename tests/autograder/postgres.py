"""A PostgreSQL server of one's own: started in a new folder, on a socket there, and gone with the block."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

#: Debian keeps the server's programs out of the PATH.
INITDB = shutil.which("initdb") or next(iter(Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
PATIENCE = 60.0


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Yields the URL of an empty database. What is written is not forced to the disk."""
    assert INITDB, "PostgreSQL's server is not installed"
    folder = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))  # the name of a socket has few characters
    programs, user = Path(INITDB).resolve().parent, []
    if os.geteuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "nobody")
        user = ["setpriv", "--reuid=nobody", "--clear-groups", "--"]
    made = [str(programs / "initdb"), "--pgdata", str(folder / "data"), "--username=grader", "--auth=trust"]
    options = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off"]
    command = [str(programs / "postgres"), "-D", str(folder / "data"), *(f"-c{each}" for each in options)]
    url = f"postgresql+psycopg://grader@/postgres?host={folder}"
    with (folder / "log").open("wb") as log:
        subprocess.run(
            [*user, *made, "--no-sync", "--encoding=UTF8", "--locale=C"], check=True, cwd=folder, stdout=log
        )
        process = subprocess.Popen([*user, *command], cwd=folder, stdout=log, stderr=log)
    try:
        _wait(url, process)
        yield url
    finally:
        process.terminate()  # it tells its own processes
        process.wait()
        shutil.rmtree(folder)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    engine, until = create_engine(url), time.monotonic() + PATIENCE
    while True:
        try:
            engine.connect().close()
        except OperationalError:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        else:
            return engine.dispose()
