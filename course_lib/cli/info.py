"""`course-lib info`: what this machine has."""

from __future__ import annotations

import argparse
from typing import Any

from course_lib.cli.common import GOOD


def add(commands: Any) -> None:
    info = commands.add_parser(
        "info", help="versions, device, threads, cache folder", description="What this machine has."
    )
    info.add_argument("--json", action="store_true", help="print JSON alone")
    info.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> int:
    from course_lib.base import UserError, cache_dir, environment, hardware, resolve_device, to_json
    from course_lib.training import resolve_precision

    device, reason = resolve_device("auto")
    precision = resolve_precision("auto", device)
    facts = environment() | hardware()
    facts |= {"device": f"{device} ({reason})", "precision": f"{precision.name} ({precision.reason})"}
    try:
        facts["cache"] = str(cache_dir())
    except UserError as error:  # what is wrong here is what `info` is asked for
        facts["cache"] = str(error)
    if arguments.json:
        print(to_json(facts))
        return GOOD
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in facts.pop("packages").items())
    memory = facts.pop("memory_bytes")
    facts |= {"packages": packages, "memory": f"{memory / 2**30:.1f} GiB" if memory else "unknown"}
    facts["accelerators"] = ", ".join(facts["accelerators"]) or "none"
    folder = facts.pop("code")["folder"]
    if folder:
        facts["commit"] = folder["commit"] + (", with changes" if folder["is_dirty"] else "")
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<15} {value}")
    return GOOD
