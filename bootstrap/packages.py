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
    say("Bringing pip to the tested version …")
    try:
        pip.run("--upgrade", "pip")
    except SetupError:  # a folder of wheels without pip among them; the one that is there may do
        say("  pip stays as it is: no other version can be had here")
    target = f"{root}[dev]" if dev else str(root)
    if not pip.can_plan():
        say("Installing into .venv; this pip cannot tell the size of the download beforehand …")
        pip.run("--editable", target)
        return
    say("Finding out what is missing …")
    plan = pip.plan("--editable", target)
    source = os.environ.get(torch_build.INDEX_VARIABLE) or torch_build.choose(plan.sizes)
    if "torch" in plan.sizes and source:
        say(f"Installing the build of torch offered by {source} …")
        pip.run("--no-deps", *torch_build.pip_source(source), "torch")
        plan = pip.plan("--editable", target)
    if plan.sizes:
        say(f"Packages to install into .venv: {len(plan.sizes)}; the download is {plan.describe()}.")
    pip.run("--progress-bar", "raw", "--editable", target, plan=plan)


class Plan:
    """What pip would install: name → bytes to download, None where the server does not say."""

    def __init__(self, sizes: dict[str, int | None]) -> None:
        self.sizes = sizes

    @property
    def num_bytes(self) -> int:
        return sum(size or 0 for size in self.sizes.values())

    def describe(self) -> str:
        num_unknown = sum(size is None for size in self.sizes.values())
        unknown = f" and {num_unknown} packages of unknown size" if num_unknown else ""
        return f"{human_size(self.num_bytes)}{unknown} (less what pip has cached)"


class Pip:
    """The environment's pip: its output goes to `log`, `keep_open` is the lock that it inherits."""

    #: From here on a dry run downloads descriptions instead of packages, and progress can be read by a program.
    PLANS_SINCE = (26, 0)

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

    def can_plan(self) -> bool:
        answer = subprocess.run(
            [self._python, "-c", "import pip; print(pip.__version__)"], capture_output=True, text=True
        )
        found = re.match(r"(\d+)\.(\d+)", answer.stdout)
        return found is not None and (int(found[1]), int(found[2])) >= self.PLANS_SINCE

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

    def run(self, *args: str, plan: Plan | None = None) -> None:
        """Run `pip install` with these arguments; raises SetupError with its reason in one line."""
        progress = Progress(plan, site_packages_of(self._python))
        last_lines: list[str] = []
        process = self._start(self._command(*args))
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


def site_packages_of(python: Path) -> Path | None:
    return next(python.parent.parent.glob("[Ll]ib/**/site-packages"), None)


def explain(lines: list[str], log: Path) -> str:
    """One line from pip's last words: its ERROR lines say what, the advice follows from the kind of error."""
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    errors = [error for error in errors if not error.startswith("ResolutionImpossible")]
    text = errors[-1] if errors else next((line for line in reversed(lines) if line), "pip gave no reason")
    for index, line in enumerate(lines[:-1]):
        if "no matching distributions available" in line:
            names = ", ".join(name for name in lines[index + 1 : index + 4] if re.fullmatch(r"[\w.-]+", name))
            text = f"nowhere in pip's settings is there a fitting version of {names}"
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

    def __init__(self, plan: Plan | None, site: Path | None) -> None:
        self._plan = plan
        self._site = site
        self._num_before = self._num_installed()
        self._finished_bytes = 0
        self._current = (0, 0)
        self._doing = "asking pip"

    def _num_installed(self) -> int:
        return sum(1 for _ in self._site.glob("*.dist-info")) if self._site else 0

    def feed(self, line: str) -> bool:
        """Take one line of pip's output; True if it is a progress report and not worth keeping."""
        if report := re.match(r"\s*Progress (\d+) of (\d+)", line):
            now, total = int(report[1]), int(report[2])
            if total != self._current[1] or now < self._current[0]:
                self._finished_bytes += self._current[1]
            self._current = (now, total)
            return True
        word, _, rest = line.strip().partition(" ")
        if word in ("Downloading", "Processing", "Collecting"):
            name = rest.split(" ")[0].rsplit("/", 1)[-1]
            what = word.lower() if self._plan else "reading about"  # a dry run downloads descriptions
            self._doing = f"{what} {re.split(r'[<>=!;~[]', name)[0]}"
        elif line.startswith("Installing collected packages"):
            self._doing = "unpacking"
        return False

    def text(self) -> str:
        if not self._plan:
            return self._doing
        if self._doing == "unpacking":  # pip says nothing meanwhile, but the packages appear one by one
            num = min(self._num_installed() - self._num_before, len(self._plan.sizes))
            return f"unpacked {num} of {len(self._plan.sizes)} packages"
        loaded = human_size(self._finished_bytes + self._current[0])
        return f"{loaded} of {human_size(self._plan.num_bytes)}: {self._doing}"
