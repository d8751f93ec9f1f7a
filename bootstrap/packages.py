"""Install what the checkout needs with the machine's own pip, its settings and its progress bar."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, run

PYTHON = Path(".venv", "Scripts/python.exe" if os.name == "nt" else "bin/python")
LOG = Path(".venv", "setup.log")


class SetupError(RuntimeError):
    """The set-up cannot go on. The message is one line and names the fix."""


def say(text: str) -> None:
    """Print on stderr: stdout belongs to the verb that runs afterwards (`--json` prints JSON alone)."""
    print(text, file=sys.stderr, flush=True)


def install(root: Path, extra: str) -> None:
    """Install the checkout (editable) with this extra; tell the size of the download before it begins."""
    target = ("--editable", f"{root}[{extra}]")
    say("Bringing pip to the tested version …")
    try:
        pip(root, "--upgrade", "pip")
    except SetupError:
        say("  no other pip can be had here: going on with this one")
    say("Finding out what is missing …")
    sizes = plan(root, *target)
    if "torch" in sizes and (source := os.environ.get("WORKBOOK_TORCH_INDEX") or choose_torch(sizes)):
        folder = str(Path(source).expanduser().absolute())
        place = ("--index-url", source) if "://" in source else ("--no-index", "--find-links", folder)
        pip(root, "--no-deps", *place, "torch", shown=True)
        sizes = plan(root, *target)
    if sizes:
        unknown = f" and {n} packages of unknown size" if (n := [*sizes.values()].count(None)) else ""
        download = f"the download is {total(sizes)}{unknown} (less what pip has cached)"
        say(f"Packages to install into .venv: {len(sizes)}; {download}.")
    pip(root, *target, shown=True)


def pip(root: Path, *args: str, shown: bool = False) -> None:
    """Run `pip install`, which inherits the set-up's lock. What it says goes to LOG, and if `shown` to a terminal."""
    log, shown = root / LOG, shown and sys.stderr.isatty()
    command = [str(root / PYTHON), "-m", "pip", "install", "-c", "constraints.txt", *args]
    command += ["--log", str(log)] if shown else []
    env = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    with log.open("wb") as file:
        out = sys.stderr if shown else file
        done = run(command, cwd=root, env=env, stdin=DEVNULL, stdout=out, stderr=out, close_fds=False)
    if done.returncode:
        why = explain(log.read_text(encoding="utf-8", errors="replace"))
        raise SetupError(f"pip stopped: {why}; then start again. The whole story is in {log}")


def plan(root: Path, *args: str) -> dict[str, int | None]:
    """What pip would install, by name: bytes to download, or None where the server does not say."""
    report = (root / LOG).with_suffix(".json")
    pip(root, "--dry-run", "--report", str(report), *args)
    items = json.loads(report.read_text(encoding="utf-8"))["install"]
    downloads = [(item["metadata"]["name"].lower(), item["download_info"]) for item in items]
    urls = {name: info["url"] for name, info in downloads if "dir_info" not in info}  # not the checkout
    command = [str(root / PYTHON), __file__, json.dumps(urls)]
    done = run(command, capture_output=True, text=True, cwd=root)
    return json.loads(done.stdout) if done.returncode == 0 else dict.fromkeys(urls)


def total(sizes: dict[str, int | None]) -> str:
    return f"{sum(filter(None, sizes.values())) / 1e6:,.0f} MB"


def has_nvidia_driver() -> bool:
    """Of any version, on Linux or in Windows' Linux (WSL)."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/usr/lib/wsl/lib/libcuda.so.1").exists()


def choose_torch(sizes: dict[str, int | None]) -> str | None:
    """Given pip's plan, where to take the CPU build of torch from; None to follow the plan.

    On Linux a plain pip finds the build with CUDA's libraries (torch 2.13.0: 2.7 GB instead of 0.2), but takes the
    CPU build where its settings offer it: `2.13.0+cpu` sorts above `2.13.0`. Else a person at a terminal is asked.
    """
    cuda = {name: size for name, size in sizes.items() if re.match("nvidia(?!-ml-py)|cuda|triton", name)}
    if not cuda or not sys.platform.startswith("linux") or has_nvidia_driver():
        return None
    say(f"""
pip's settings here offer only the CUDA build of torch, and this machine has no NVIDIA driver.
Of {total(sizes)} to download, {total(cuda)} are CUDA libraries without use here. Where the CPU build is, is told on
  pytorch.org/get-started/locally (choose Linux, Pip, CPU: it is what stands after --index-url);
that address, or a folder of wheels, can also be set as WORKBOOK_TORCH_INDEX.""")
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("CI"):
        say("Nobody is here to ask, so the download goes on.")
        return None
    say("Paste that address here, or write `all` to download all of it nevertheless (Enter stops):")
    if answer := sys.stdin.readline().strip():
        return None if answer.lower() == "all" else answer
    raise SetupError("stopped before the download; start again with WORKBOOK_TORCH_INDEX=ADDRESS set")


#: What pip and its parts say → what it means, and the cure.
CAUSES = {
    "Cannot connect to proxy|ProxyError|Connection refused|WinError 10061": "the proxy, or the package index, that "
    "is set does not answer. Fix: unset HTTPS_PROXY https_proxy HTTP_PROXY http_proxy (or set them to one that does)",
    "Errno -[235]\\b|getaddrinfo failed|nodename nor servname|Network is unreachable|Errno 101": "there is no "
    "network, or no package index where pip looks. Fix: connect this machine, or: pip config unset global.index-url",
    "CERTIFICATE_VERIFY_FAILED": "pip does not know the network's certificate. Fix: ask its administrator for the "
    "file, and: pip config set global.cert FILE",
    "Errno 28|No space left": "the disk is full. Fix: free 2 GB, or for temporary files: export TMPDIR=FOLDER",
    "Errno 13|Permission denied": "a folder cannot be written. Fix: make it yours: chmod -R u+rwX .",
}


def explain(said: str) -> str:
    """In one line the cause and its cure, where pip's words tell them; else its last words and where to look."""
    for pattern, cause in CAUSES.items():
        if re.search(pattern, said):
            return cause
    text = ["it gave no reason", *re.findall(r"ERROR: (?!ResolutionImpossible)(.*)", said)][-1]
    if missing := re.search(r"no matching distributions available.*\s+(?:\S+T\S+\s+)?(\S+)", said):
        text = f"nowhere in pip's settings is there a fitting version of {missing[1]}"
    return f"{text}. Fix: check the network, the disk (2 GB are needed) and pip's settings (pip config list)"


if __name__ == "__main__":  # run by the environment's Python: {name: address} → {name: bytes or null}
    from pip._internal.commands.install import InstallCommand

    # A session of pip's, for its proxy, certificates and credentials. It is no public interface and may change.
    install_command, urls = InstallCommand("install", ""), json.loads(sys.argv[1])
    session = install_command._build_session(install_command.parse_args(["-"])[0], retries=0, timeout=15)
    session.headers["Accept-Encoding"] = "identity"  # else a server may tell the size of a compressed answer
    with ThreadPoolExecutor(8) as pool:
        heads = list(pool.map(lambda url: session.head(url, allow_redirects=True), urls.values()))
    found = [int(head.headers.get("Content-Length", 0)) or None if head.ok else None for head in heads]
    print(json.dumps(dict(zip(urls, found, strict=True))))
