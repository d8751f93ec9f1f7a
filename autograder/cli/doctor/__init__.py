"""`workbook doctor`: what could go wrong on this machine, tried rather than guessed, with one fix for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autograder.cli.doctor import installed, jupyter, machine, places
from autograder.cli.doctor.findings import Finding, Found, reinstall

#: In this order, because what stands first may be the cause of what follows.
LOOKS: dict[str, Callable[[], Found]] = {
    "Python": installed.python,
    "write access": places.write_access,
    "disk": places.disk,
    "folder": places.folder,
    "file names": places.file_names,
    "packages": installed.packages,
    "pip": installed.pip,
    "torch": installed.torch,
    "kernel": jupyter.kernel,
    "JupyterLab": jupyter.lab,
    "widgets": jupyter.widgets,
    "port": jupyter.port,
    "proxy": jupyter.proxy,
    "progress": places.progress,
    "text": machine.text,
    "memory": machine.memory,
    "accelerator": machine.accelerator,
    "sandbox": machine.sandbox,
    "calibration": machine.calibration,
}


def examine() -> Iterator[Finding]:
    """Look at everything, one after the other. Takes about ten seconds."""
    has_failed = False
    for name, look in LOOKS.items():
        try:
            found = look()
        except Exception as error:  # a doctor that falls ill is a finding too
            found = "fail", " ".join(f"{type(error).__name__}: {error}".split())[:200], reinstall()
        level, text, fix = found
        if has_failed and fix == reinstall():  # the strongest cure, and perhaps for a consequence only
            fix = "first the fix above, then again: workbook doctor"
        has_failed = has_failed or level == "fail"
        yield Finding(name, level, text, fix)


def report(finding: Finding) -> str:
    """One line, and a second one with the fix where there is one."""
    mark = {"ok": "✓", "note": "·", "fail": "✗"}[finding.level]
    line = f"{mark} {finding.name:<12} {finding.found}"
    return f"{line}\n{'':<15}fix: {finding.fix}" if finding.fix else line
