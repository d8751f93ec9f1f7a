"""Install what the checkout needs, with the machine's own pip and its own settings, and show how far it is."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from bootstrap import torch_build
from bootstrap.console import SetupError, human_size, live_line, say


def install(root: Path, python: Path, *, dev: bool, log: Path, keep_open: int | None) -> None:
    """Install the checkout (editable) and its dependencies in the versions of constraints.txt.

    `keep_open` is a file descriptor for pip to inherit. Raises SetupError with pip's own reason in one line; the
    whole of pip's output is in `log`.
    """
    log.unlink(missing_ok=True)
    pip = Pip(root, python, log, keep_open)
    target = ("--editable", f"{root}[dev]" if dev else str(root))
    say("Bringing pip to the tested version …")
    try:
        pip.run("--upgrade", "pip")
    except (
        SetupError
    ):  # a folder of wheels without pip among them; an older pip would download to make a plan
        say("  no other pip can be had here, and this one cannot tell the size of the download; installing …")
        pip.run(*target)
        return
    say("Finding out what is missing …")
    sizes = pip.plan(*target)
    source = os.environ.get(torch_build.INDEX_VARIABLE) or torch_build.choose(sizes)
    if "torch" in sizes and source:
        say(f"Installing the build of torch offered by {source} …")
        pip.run("--no-deps", *torch_build.pip_source(source), "torch")
        sizes = pip.plan(*target)
    num_bytes = sum(size or 0 for size in sizes.values())
    if sizes:
        unknown = list(sizes.values()).count(None)
        and_more = f" and {unknown} packages of unknown size" if unknown else ""
        download = f"the download is {human_size(num_bytes)}{and_more} (less what pip has cached)"
        say(f"Packages to install into .venv: {len(sizes)}; {download}.")
    pip.run("--progress-bar", "raw", *target, num_bytes=num_bytes)


class Pip:
    """The environment's pip."""

    def __init__(self, root: Path, python: Path, log: Path, keep_open: int | None) -> None:
        self._root = root
        self._python = str(python)
        self._log = log
        self._keep_open = (keep_open,) if keep_open is not None else ()

    def plan(self, *args: str) -> dict[str, int | None]:
        """What pip would install: name → bytes to download, None where the server does not say.

        Downloads no package, only descriptions.
        """
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            self.run("--dry-run", "--report", str(report), *args)
            items = json.loads(report.read_text(encoding="utf-8"))["install"]
        urls = {
            item["metadata"]["name"].lower(): item["download_info"]["url"]
            for item in items
            if "dir_info" not in item["download_info"]  # the checkout itself
        }
        command = [self._python, str(Path(__file__).with_name("download_sizes.py"))]
        answer = subprocess.run(
            command, input=json.dumps(urls), capture_output=True, text=True, cwd=self._root
        )
        # Sizes are information; without them the set-up still works.
        return json.loads(answer.stdout) if answer.returncode == 0 else dict.fromkeys(urls)

    def run(self, *args: str, num_bytes: int = 0) -> None:
        """Run `pip install` with these arguments; raises SetupError with its reason in one line."""
        progress = Progress(num_bytes)
        lines: list[str] = []
        process = subprocess.Popen(
            [
                self._python,
                "-m",
                "pip",
                "install",
                "--constraint",
                str(self._root / "constraints.txt"),
                *args,
            ],
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=self._keep_open,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUTF8": "1"},
        )
        assert process.stdout is not None
        try:
            with self._log.open("a", encoding="utf-8") as log, live_line(progress.text):
                for line in process.stdout:
                    if not progress.feed(line):
                        log.write(line)
                        lines.append(line.strip())
                process.wait()
        finally:
            process.terminate()  # does nothing to a process that has ended
            process.wait()
        if process.returncode != 0:
            raise SetupError(explain(lines, self._log))


#: What pip and its parts say, in which case; what it means, and the cure.
_CAUSES = (
    (
        "Cannot connect to proxy|ProxyError|Connection refused|WinError 10061",
        "the proxy, or the package index, that is set does not answer",
        "unset HTTPS_PROXY https_proxy HTTP_PROXY http_proxy (or set them to one that does)",
    ),
    (
        "Errno -[235]\\b|getaddrinfo failed|nodename nor servname|Network is unreachable|Errno 101",
        "there is no network, or no package index at the address that pip is set to",
        "connect this machine, or: pip config unset global.index-url",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "the network's certificate is not known to pip",
        "pip config set global.cert FILE (the certificate of your network, which its administrator has)",
    ),
    (
        "Errno 28|No space left",
        "the disk is full",
        "free 2 GB, or for the temporary files: export TMPDIR=FOLDER",
    ),
    ("Errno 13|Permission denied", "a folder cannot be written", "make this folder yours: chmod -R u+rwX ."),
)


def explain(lines: list[str], log: Path) -> str:
    """One line: the cause, where pip's words tell it and its cure is known; else pip's last words themselves, its
    ERROR lines or the packages under the line that says they cannot be had."""
    said = "\n".join(lines)
    for pattern, cause, cure in _CAUSES:
        if re.search(pattern, said):
            return f"pip stopped: {cause}. Fix: {cure}; then run the same command again. The whole story is in {log}"
    lines = lines[-40:]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    errors = [error for error in errors if not error.startswith("ResolutionImpossible")]
    text = ["it gave no reason", *filter(None, lines), *errors][-1]
    for index, line in enumerate(lines):
        if "no matching distributions available" in line:
            names = ", ".join(name for name in lines[index + 1 : index + 4] if re.fullmatch(r"[\w.-]+", name))
            text = f"nowhere in pip's settings is there a fitting version of {names}"
    return (
        f"pip stopped: {text}. Check the network, the room on this disk (2 GB) and pip's settings (pip config list), "
        f"and run the same command again to go on; the whole story is in {log}"
    )


class Progress:
    """Turns pip's output into one short line of text. `num_bytes`: size of the download, 0 where it is unknown."""

    def __init__(self, num_bytes: int) -> None:
        self._num_bytes = num_bytes
        self._finished_bytes = 0
        self._now, self._total = 0, 0
        self._doing = "asking pip"

    def feed(self, line: str) -> bool:
        """Take one line of pip's output; True if it is a progress report and not worth keeping."""
        if report := re.match(r"\s*Progress (\d+) of (\d+)", line):
            now, total = int(report[1]), int(report[2])
            if total != self._total or now < self._now:  # the next file
                self._finished_bytes += self._total
            self._now, self._total = now, total
        elif found := re.match(r"\s*(Downloading|Processing|Collecting) (?:\S*/)?([^\s<>=!;~[]+)", line):
            self._doing = f"{found[1].lower()} {found[2]}"
        elif line.startswith("Installing collected packages"):
            self._doing = "unpacking"
        return report is not None

    def text(self) -> str:
        if not self._num_bytes or self._doing == "unpacking":
            return self._doing
        loaded = human_size(self._finished_bytes + self._now)
        return f"{loaded} of {human_size(self._num_bytes)}: {self._doing}"
