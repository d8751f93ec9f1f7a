"""One file per checked exercise: enough to see how a verdict came about, and to ask again.

docs/evidence.md describes the file, `evidence.schema.json` is what it must hold. A page for people stands beside it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.common import MAX_ATTEMPTS as MAX_ATTEMPTS
from autograder.common import Result, data_directory
from autograder.engine.source.family import family as family
from autograder.engine.source.family import text_hash
from autograder.engine.timing import KeptBlock, decide_on
from autograder.show import page
from course_lib.base import UserError, atomic_write_text, installed_version, processor_name, remove_leftovers

SCHEMA_VERSION = 2
_PACKAGES = ("torch", "numpy", "scipy", "tokenizers", "training-workbook")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is kept of one check beside its history: `conditions` is what the machine was like meanwhile."""

    result: Result
    threads: int
    conditions: Mapping[str, object]


@dataclass(frozen=True)
class History:
    """What the clock has said about one family of code on this machine so far.

    attempts: verdicts it came to. An inconclusive one is not at its end and does not count.
    clock_verdict: "pass", "fail" or "inconclusive", what `blocks` say; None when the clock was never asked.
    """

    attempts: int = 0
    clock_verdict: str | None = None
    blocks: tuple[KeptBlock, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether measuring again would be trying until the noise is kind: then the last verdict stands."""
        return self.attempts >= MAX_ATTEMPTS

    def prior_blocks(self) -> list[KeptBlock]:
        """The blocks that a check goes on from: of a question still open, or of a verdict that stands, which
        no further block can undo."""
        return list(self.blocks) if self.stands or self.clock_verdict == "inconclusive" else []

    def after(self, verdict: str, blocks: list[KeptBlock], bar: float) -> History:
        """The history with one more check. verdict: of the whole check; blocks: prior ones and its own."""
        if self.stands:
            return self
        # The clock's own word: a solution that is fast enough may have failed by something else.
        outcome = verdict if verdict == "inconclusive" else _outcome(blocks, bar)
        decided = outcome in ("pass", "fail")
        return History(self.attempts + decided, outcome if decided else "inconclusive", tuple(blocks))


def _outcome(blocks: list[KeptBlock], bar: float) -> str | None:
    """What the clock says of all parts of an exercise: "fail" where one fails, "pass" where all pass."""
    parts: dict[str, list[KeptBlock]] = {}
    for block in blocks:
        parts.setdefault(block.part, []).append(block)
    found = {decide_on(of_part, bar).outcome for of_part in parts.values()}
    return "fail" if "fail" in found else "pass" if found == {"pass"} else None


def path_of(exercise_id: str, source: str, *, again: bool = False) -> Path:
    """Where the evidence of this code lies: others of its family share the history, and have files of their own. again:
    of a check of a file's record."""
    name = f"{_of_family(exercise_id, source)}-{text_hash(source)[:16]}{'-again' if again else ''}.json"
    return data_directory() / "evidence" / name


def _of_family(exercise_id: str, source: str) -> str:
    return f"{exercise_id}-{family(source)[:16]}"


def history(exercise_id: str, source: str) -> History:
    """What is on record for this family of code with this hardware and these versions."""
    found, here, begin = History(), (hardware(), versions()), _of_family(exercise_id, source)
    # A file for each text of the family: that of the last check went on from the others.
    paths = [
        path for path in (data_directory() / "evidence").glob(f"{begin}*.json") if "again" not in path.stem
    ]
    for path in sorted(paths, key=_time, reverse=True):
        with contextlib.suppress(UserError):
            record = read(path)
            if (record["hardware"], record["versions"]) == here:
                blocks = tuple(map(KeptBlock.of_dict, record["blocks"]))
                found = History(record["attempts"], record["clock_verdict"], blocks)
                break  # a class may have hundreds of one family
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads(open_blocks(exercise_id, source).read_text(encoding="utf-8"))
        blocks = tuple(map(KeptBlock.of_dict, kept["blocks"]))
        if (kept["hardware"], kept["versions"]) == here and not found.stands:
            return History(found.attempts, "inconclusive", blocks)
    return found


def keep_open(exercise_id: str, source: str, blocks: list[KeptBlock]) -> bool:
    """Keep the blocks of a check that was stopped, prior ones included, for the next one; whether that worked.

    The record of the last verdict stays as it is. `save` takes these blocks away: those of its check hold them.
    """
    dicts = [block.to_dict() for block in blocks]
    kept = json.dumps({"hardware": hardware(), "versions": versions(), "blocks": dicts})
    try:
        atomic_write_text(open_blocks(exercise_id, source), kept)
    except UserError:
        return False
    return True


def open_blocks(exercise_id: str, source: str) -> Path:
    """Where the blocks lie that a check of this family was stopped at."""
    return data_directory() / "evidence" / f"{_of_family(exercise_id, source)}.open"


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # taken away meanwhile
        return 0


def save(path: Path, source: str, seed: int, found: History, of_check: Facts) -> str | None:
    """Write the evidence and its page, and return its path; None when the folder cannot be written, which spoils
    no grade.

    Args:
        seed: what the secret inputs came from; its hash alone is kept.
    """
    result = of_check.result.to_dict()
    del result["evidence"]
    record = {
        "result": result,
        "threads": of_check.threads,
        "conditions": of_check.conditions,
        "schema_version": SCHEMA_VERSION,
        "source": source,
        "source_sha256": text_hash(source),
        "family_sha256": family(source),
        "seed_sha256": text_hash(str(seed)),
        "attempts": found.attempts,
        "clock_verdict": found.clock_verdict,
        "blocks": [block.to_dict() for block in found.blocks],
        "hardware": hardware(),
        "versions": versions(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    try:
        atomic_write_text(path, json.dumps(record, indent=1))
        atomic_write_text(path.with_suffix(".html"), page(record, of_check.result))
        open_blocks(result["id"], source).unlink(missing_ok=True)
    except (OSError, UserError):
        return None
    remove_leftovers(path.parent, min_age_seconds=60)  # of a check that was killed
    return str(path)


def read(path: Path) -> dict[str, Any]:
    """The record in an evidence file. Raises `UserError`, which names the field, when it is not one."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not an evidence file ({error})") from None
    if isinstance(record, dict) and record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise UserError(f"{path}: written by another version of the course; check the notebook again")
    schema = json.loads(Path(__file__).with_name("evidence.schema.json").read_text(encoding="utf-8"))
    if wrong := best_match(Draft202012Validator(schema).iter_errors(record)):
        where = wrong.json_path.removeprefix("$").removeprefix(".") or "the whole"
        raise UserError(
            f"{path}: not an evidence file: {where}: {wrong.message[:200]}. "
            "`workbook check NOTEBOOK --json` names those files"
        )
    if record["source_sha256"] != text_hash(record["source"]):
        raise UserError(f"{path}: source was changed after the check; check the notebook that it came from")
    return record


def hardware() -> dict[str, str | int | None]:
    """What the measurement ran on."""
    system = {"machine": platform.machine(), "system": platform.system()}
    return system | {"processor": processor_name(), "cores": os.cpu_count()}


@functools.cache  # the look at each package's metadata takes as long as a small check
def versions() -> dict[str, str | None]:
    """Versions of Python and of what shapes a measurement; None for a package that is not installed."""
    return {"python": platform.python_version()} | {name: installed_version(name) for name in _PACKAGES}
