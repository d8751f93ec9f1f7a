"""The page's side of `learner_kills`: `workbook start` with folders of its own, and what a browser sends and hears."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.blocking.client import BlockingKernelClient

from tests.autograder.solutions import reference_sources

SLUG = "01_efficient_training_loops"
LETTERS = "abcd"
CLICKED = tuple(f"01.{number}" for number in range(1, 6))
TYPED = ("01.8", "01.10")
CHECKS = {"0.1": "00", "1.3": "01"}  # with the lesson of each
START_SECONDS = 120.0


class Server:
    """A learner's folder, served; started again after each time that it was killed."""

    def __init__(self, root: Path) -> None:
        self.folder, self.data, self.runtime = root / "mine", root / "data", root / "runtime"
        self.data.mkdir(parents=True)
        self.environment = os.environ | {
            "WORKBOOK_DATA": str(self.data),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTER_CONFIG_DIR": str(root / "config"),
            "JUPYTER_DATA_DIR": str(root / "jupyter"),
            "IPYTHONDIR": str(root / "ipython"),
            "JUPYTER_TOKEN": "token",
            "OMP_NUM_THREADS": "1",
        }
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Serve, unless it runs. Raises SystemExit when it does not start."""
        if self.process and self.process.poll() is None:
            return
        command = [
            sys.executable,
            "-m",
            "autograder.cli.main",
            "start",
            "--no-browser",
            "--dir",
            str(self.folder),
        ]
        with socket.socket() as probe:  # the first free one might be another run's a moment later
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [*command, "--port", str(port)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout
        said = []
        for line in self.process.stdout:
            said.append(line)
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab", line):
                self.url = found[1]
                return
        raise SystemExit(f"workbook start: {''.join(said)}")

    def server(self) -> psutil.Process:
        """JupyterLab's process."""
        assert self.process
        return next(p for p in psutil.Process(self.process.pid).children() if "jupyterlab" in p.cmdline())

    def new_kernel(self) -> tuple[psutil.Process, Path]:
        """A kernel for lesson 01, and its connection file; the ones before are shut down."""
        for session in self._ask("GET", "sessions"):
            with contextlib.suppress(
                urllib.error.HTTPError
            ):  # in the middle of restarting a kernel that was killed
                self._ask("DELETE", f"sessions/{session['id']}")
        path = f"{SLUG}/{SLUG}.ipynb"
        wanted = {"path": path, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
        kernel_id = self._ask("POST", "sessions", wanted)["kernel"]["id"]
        connection_file = self.runtime / f"kernel-{kernel_id}.json"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for child in self.server().children():
                with contextlib.suppress(psutil.Error):
                    if str(connection_file) in child.cmdline() and connection_file.exists():
                        return child, connection_file
            time.sleep(0.02)
        raise SystemExit("the server started no kernel")

    def words_after_kill(self) -> str:
        """What `workbook start` says when its server is gone."""
        assert self.process
        return self.process.communicate(timeout=START_SECONDS)[0]

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=START_SECONDS)

    def _ask(self, method: str, what: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/api/{what}",
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": "token token"},
            method=method,
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=START_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None


@dataclass
class Told:
    """What the learner knows to be saved.

    Attributes:
        choices: by question, all that were given, in order.
        saved: by question, the place of the last choice that was acknowledged.
        num_answers: how many were acknowledged.
        checks: exercise, verdict and evidence file of every check that came to its end.
    """

    choices: dict[str, list[str]] = field(default_factory=dict)
    saved: dict[str, int] = field(default_factory=dict)
    num_answers: int = 0
    checks: list[tuple[str, str, str | None]] = field(default_factory=list)


class Session:
    """One kernel with the lesson open, and a learner who does not wait for one thing to end before the next."""

    def __init__(
        self, kernel: psutil.Process, connection_file: Path, told: Told, rng: random.Random, *, mark: str
    ) -> None:
        self.kernel, self.told, self.rng, self.mark = kernel, told, rng, mark
        self.is_open, self.is_new = False, True
        self.client = BlockingKernelClient(connection_file=str(connection_file))
        self.client.load_connection_file()
        self.client.start_channels()
        # ipykernel looks whether its server lives from here on: one that is orphaned earlier stays for good.
        # And what it publishes before our subscription has reached it is lost: ask until something is heard.
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.client.kernel_info()
            self.client.get_shell_msg(timeout=START_SECONDS)
            with contextlib.suppress(queue.Empty):
                self.client.get_iopub_msg(timeout=1)
                break
        self.radios: dict[str, str] = {}
        self.shown: dict[str, str | None] = {}
        self.restored: dict[str, str | None] = {}  # what was shown at first
        self.pending: dict[str, tuple[str, ...]] = {}
        self.problems: list[str] = []

    def open_lesson(self, killed: threading.Event) -> bool:
        """Run the cells above the work. False when the kernel was killed meanwhile."""
        sources = [
            f"{reference_sources(lesson)[each]}\nMARK = {self.mark!r}\n" for each, lesson in CHECKS.items()
        ]
        imports = "from autograder import answer, check, quiz"
        for code in (imports, *sources, 'quiz("01")'):
            self.pending[self.client.execute(code)] = ("cell",)
        deadline = time.monotonic() + START_SECONDS
        while self.pending and not killed.is_set():
            self.listen()
            if time.monotonic() > deadline:
                raise SystemExit("a kernel did not run the lesson's cells")
        self.is_open, self.restored = not self.pending, dict(self.shown)
        return self.is_open

    def is_pending(self, kind: str) -> bool:
        """Whether a "cell", an "answer" or a "check" is under way."""
        return any(what[0] == kind for what in self.pending.values())

    def work(self) -> None:
        """Click, type or check, and hear what comes back."""
        if len(self.pending) < 4:
            acts = [self._click] * 6 + [self._type] * 2 + [self._check] * (not self.is_pending("check"))
            self.rng.choice(acts)()
        self.listen()

    def _click(self) -> None:
        question = self.rng.choice(CLICKED)
        choice = self.rng.choice([letter for letter in LETTERS if letter != self.shown[question]])
        self.shown[question] = choice
        data = {"method": "update", "state": {"index": LETTERS.index(choice)}, "buffer_paths": []}
        message = self.client.session.msg("comm_msg", {"comm_id": self.radios[question], "data": data})
        self.client.shell_channel.send(message)
        self._given(message["header"]["msg_id"], question, choice)

    def _type(self) -> None:
        question, choice = self.rng.choice(TYPED), self.rng.choice(LETTERS)
        self._given(self.client.execute(f'answer("{question}", "{choice}")'), question, choice)

    def _given(self, message_id: str, question: str, choice: str) -> None:
        self.told.choices.setdefault(question, []).append(choice)
        self.pending[message_id] = ("answer", question, str(len(self.told.choices[question]) - 1))

    def _check(self) -> None:
        exercise_id = self.rng.choice(list(CHECKS))
        ask = {key: f"score.result.{key}" for key in ("verdict", "evidence")}
        message_id = self.client.execute(f'score = check("{exercise_id}")', user_expressions=ask)
        self.pending[message_id] = ("check", exercise_id)

    def listen(self, seconds: float = 0.01) -> None:
        """Take what the kernel has sent to the page, until nothing comes for some seconds."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._heard(self.client.get_iopub_msg(timeout=seconds))
        with contextlib.suppress(queue.Empty):
            while True:
                self._replied(self.client.get_shell_msg(timeout=0))

    def _heard(self, message: dict[str, Any]) -> None:
        content, parent = message["content"], message["parent_header"].get("msg_id", "")
        state = content.get("data", {}).get("state", {}) if message["msg_type"].startswith("comm") else {}
        if message["msg_type"] == "comm_open" and state.get("_model_name") == "RadioButtonsModel":
            question = f"01.{state['description'].split()[-1]}"
            self.radios[question] = content["comm_id"]
            self.shown[question] = None if state["index"] is None else LETTERS[state["index"]]
        text = str(state.get("value", "")) + str(content.get("text", ""))
        if "not saved" in text or message["msg_type"] == "error":
            self.problems.append(text or "\n".join(content["traceback"])[-500:])
        elif self.pending.get(parent, ("",))[0] == "answer" and "saved" in text:
            _, question, number = self.pending[parent]
            del self.pending[parent]
            self.told.num_answers += 1
            self.told.saved[question] = int(number)
        elif content.get("execution_state") == "idle" and self.pending.get(parent, ("check",))[0] != "check":
            del self.pending[parent]  # a click on what is chosen saves nothing; a check ends with its reply

    def _replied(self, message: dict[str, Any]) -> None:
        parent = message["parent_header"].get("msg_id", "")
        if self.pending.get(parent, ("",))[0] != "check":
            return
        _, exercise_id = self.pending.pop(parent)
        found = message["content"].get("user_expressions", {})
        values = [found.get(key, {}).get("data", {}).get("text/plain") for key in ("verdict", "evidence")]
        if values[0] is None:
            self.problems.append(f"check({exercise_id}): {message['content']}"[:500])
        else:
            verdict, path = (None if value in (None, "None") else str(value).strip("'") for value in values)
            self.told.checks.append((exercise_id, str(verdict), path))

    def goes_on(self) -> list[str]:
        """Wait for all that is under way, click once and check once; returns what did not come back, or went wrong."""
        self._wait()
        before = len(self.told.checks), self.told.num_answers
        self._click()
        self._check()
        self._wait()
        if self.pending or (len(self.told.checks), self.told.num_answers) != (before[0] + 1, before[1] + 1):
            return [f"no answer to {self.pending}"]
        return [] if self.told.checks[-1][1] == "pass" else [f"the next check: {self.told.checks[-1]}"]

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.pending and time.monotonic() < deadline:
            self.listen()

    def close(self) -> None:
        self.client.stop_channels()
