"""A running `workbook start` for the tests: what it printed, and its server's interface."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START_PAGE = "00_start_here/00_start_here.ipynb"


class Course:
    """A running `workbook start`: what it printed, and its server's interface."""

    def __init__(self, process: subprocess.Popen[str], printed: list[str], seconds: float) -> None:
        self.process, self.printed, self.seconds = process, printed, seconds
        match = re.search(r"(http://127\.0\.0\.\d+:(\d+))/lab/tree/(\S+)\?token=([^\s&]+)", printed[-1])
        assert match, printed
        self.address, self.port, self.page, self.token = match[1], int(match[2]), match[3], match[4]

    def ask(self, path: str, content: dict[str, Any] | None = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"{self.address}{path}", data, {"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if "/api/" in path else body.decode()

    def setting(self, plugin: str, name: str) -> Any:
        """What a setting of JupyterLab is where the user has none of their own."""
        schema = self.ask(f"/lab/api/settings/@jupyterlab/{plugin}")["schema"]
        return schema["properties"][name]["default"]


@contextlib.contextmanager
def course(command: list[str], env: dict[str, str]) -> Iterator[Course]:
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    printed: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line.strip())
            if "JupyterLab is ready" in line:
                break
        yield Course(process, printed, time.monotonic() - began)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
        process.kill()


def user_env(home: Path) -> dict[str, str]:
    """A user whose own Jupyter folder holds a kernel named python3 that must not be taken."""
    decoy = home / "jupyter" / "kernels" / "python3"
    decoy.mkdir(parents=True)
    spec = {
        "argv": ["/no/such/python", "-f", "{connection_file}"],
        "display_name": "decoy",
        "language": "python",
    }
    (decoy / "kernel.json").write_text(json.dumps(spec))
    return {
        **os.environ,
        "JUPYTER_DATA_DIR": str(home / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
    }


def start_command(python: Path | str, folder: Path, *args: str) -> list[str]:
    script = Path(python).with_name("workbook")
    return [str(python), str(script), "start", "--no-browser", "--dir", str(folder), *args]
