"""Install what the checkout needs, with the machine's own pip and its own settings, and show how far it is."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from bootstrap import torch_build
from bootstrap.console import LiveLine, SetupError, human_size, say


def install(root: Path, python: Path, *, dev: bool, log: Path, keep_open: int | None) -> None:
    """Install the checkout (editable) and its dependencies in the versions of constraints.txt.

    Raises SetupError with pip's own reason in one line; the whole of pip's output is in `log`.
    """
    log.unlink(missing_ok=True)
    pip = Pip(root, python, log, keep_open)
    # The size of a download can be told beforehand by a recent pip only: older ones download to find out.
    say("Bringing pip to the tested version …")
    pip.run("--upgrade", "pip")
    say("Finding out what is missing …")
    target = f"{root}[dev]" if dev else str(root)
    source = os.environ.get(torch_build.INDEX_VARIABLE)
    plan = pip.plan("--editable", target)
    if plan.torch_is_missing and not source:
        source = torch_build.choose(plan.sizes)
    if plan.torch_is_missing and source:
        say(f"Installing the build of torch offered by {source} …")
        pip.run("--no-deps", *torch_build.pip_source(source), "torch")
        plan = pip.plan("--editable", target)
    say(
        f"Installing {len(plan.sizes)} packages into .venv; the download is {plan.describe()}."
        if plan.sizes
        else "All packages are there."
    )
    pip.run("--editable", target, num_packages=len(plan.sizes), num_bytes=plan.num_bytes)


class Plan:
    """What pip would install: name → bytes to download, None where the server does not say."""

    def __init__(self, sizes: dict[str, int | None]) -> None:
        self.sizes = sizes

    @property
    def torch_is_missing(self) -> bool:
        return "torch" in self.sizes

    @property
    def num_bytes(self) -> int:
        return sum(size or 0 for size in self.sizes.values())

    def describe(self) -> str:
        num_unknown = sum(size is None for size in self.sizes.values())
        unknown = f" and {num_unknown} packages of unknown size" if num_unknown else ""
        return f"{human_size(self.num_bytes)}{unknown} (less what pip has cached)"


class Pip:
    def __init__(self, root: Path, python: Path, log: Path, keep_open: int | None) -> None:
        self._root = root
        self._python = python
        self._log = log
        self._keep_open = (keep_open,) if keep_open is not None else ()

    def _command(self, *args: str) -> list[str]:
        constraints = str(self._root / "constraints.txt")
        return [str(self._python), "-m", "pip", "install", "--constraint", constraints, *args]

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=self._keep_open,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUTF8": "1"},
        )

    def plan(self, *args: str) -> Plan:
        """Ask pip what it would do. Downloads no package, only descriptions."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            self.run("--dry-run", "--report", str(report), *args)
            items = json.loads(report.read_text(encoding="utf-8"))["install"]
            urls = {
                item["metadata"]["name"].lower(): item["download_info"]["url"]
                for item in items
                if "dir_info" not in item["download_info"]  # the checkout itself
            }
        script = Path(__file__).with_name("download_sizes.py")
        command = [str(self._python), str(script)]
        answer = subprocess.run(
            command, input=json.dumps(urls), capture_output=True, text=True, cwd=self._root
        )
        # Sizes are information; without them the set-up still works.
        return Plan(json.loads(answer.stdout) if answer.returncode == 0 else dict.fromkeys(urls))

    def run(self, *args: str, num_packages: int = 0, num_bytes: int = 0) -> None:
        progress = Progress(num_packages, num_bytes)
        last_lines: list[str] = []
        process = self._start(
            self._command("--progress-bar", "raw", *args) if num_packages else self._command(*args)
        )
        try:
            with self._log.open("a", encoding="utf-8") as log, LiveLine(progress.text):
                assert process.stdout is not None
                for line in process.stdout:
                    if progress.feed(line):
                        continue
                    log.write(line)
                    last_lines = [*last_lines[-40:], line.strip()]
                process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode != 0:
            raise SetupError(explain(last_lines, self._log))


def explain(lines: list[str], log: Path) -> str:
    """One line from pip's last words: its ERROR lines say what, the advice follows from the kind of error."""
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    text = errors[-1] if errors else next((line for line in reversed(lines) if line), "pip gave no reason")
    joined = " ".join(lines)
    if "No space left" in joined:
        advice = "free about 2 GB on this disk"
    elif re.search(r"connection|resolve|timed out|proxy|certificate|SSL|retr(y|ies)", joined, re.IGNORECASE):
        advice = "check the network and pip's settings (pip config list)"
    else:
        advice = "check pip's settings (pip config list)"
    return (
        f"pip stopped: {text}. To go on, {advice} and run the same command again; the whole story is in {log}"
    )


class Progress:
    """Turns pip's output into one short line of text."""

    def __init__(self, num_packages: int, num_bytes: int) -> None:
        self._num_packages = num_packages
        self._num_bytes = num_bytes
        self._num_found = 0
        self._finished_bytes = 0
        self._current = (0, 0)
        self._doing = "asking pip"

    def feed(self, line: str) -> bool:
        """Take one line of pip's output; True if it is a progress report and not worth keeping."""
        report = re.match(r"\s*Progress (\d+) of (\d+)", line)
        if report:
            now, total = int(report[1]), int(report[2])
            if total != self._current[1] or now < self._current[0]:
                self._finished_bytes += self._current[1]
            self._current = (now, total)
            return True
        word, _, rest = line.strip().partition(" ")
        if word in ("Downloading", "Using", "Processing", "Collecting"):
            name = rest.split()[-1] if word == "Using" else rest.split(" ")[0]
            name = re.split(r"[<>=!;\[]", name.rsplit("/", 1)[-1])[0]
            self._num_found += word == "Collecting"
            self._doing = f"{word.lower()} {name}"
        elif line.startswith("Installing collected packages"):
            self._doing = "unpacking"
        return False

    def text(self) -> str:
        if self._num_packages and self._doing != "unpacking":
            return (
                f"{human_size(self._finished_bytes + self._current[0])} of {human_size(self._num_bytes)}: "
                f"{self._doing}"
            )
        return self._doing
