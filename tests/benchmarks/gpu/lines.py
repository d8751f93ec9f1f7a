"""A line of the table: what is tried, what it must reach to pass, and what came of it."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PASS, FAIL = "pass", "fail"
_ROOT = Path(__file__).parents[3]


class NotHere(Exception):
    """A line cannot be tried on this machine; the message says what it needs."""


@dataclass(frozen=True)
class Found:
    """What a line found: whether that is enough, in words, and the numbers behind the words."""

    passed: bool
    text: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    what: str
    criterion: str
    run: Callable[[], Found]
    needs: str = ""
    """What the machine lacks, so that the line is not tried; "" where it is."""


@dataclass(frozen=True)
class Row:
    part: str
    what: str
    criterion: str
    verdict: str
    """`pass`, `fail`, `not run: …` or `failed: …`."""
    found: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_bad(self) -> bool:
        return self.verdict.startswith("fail")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(part: str, lines: Iterable[Line]) -> Iterator[Row]:
    """Try each line. What it raises is its row; what it held in memory is given back before the next one."""
    for line in lines:
        found = None
        try:
            if line.needs:
                raise NotHere(line.needs)
            found = line.run()
            verdict = PASS if found.passed else FAIL
        except NotHere as reason:
            verdict = f"not run: {reason}"
        except Exception as error:  # any: the next line may do better
            verdict = failed(part, line.what, error).verdict
        if not line.needs:
            _give_memory_back()
        text, numbers = (found.text, found.numbers) if found else ("", {})
        yield Row(part, line.what, line.criterion, verdict, text, numbers)


def failed(part: str, what: str, error: BaseException) -> Row:
    """The row of an error, in one line, with the place in this project that it came from; all of it goes to stderr."""
    traceback.print_exception(error, file=sys.stderr)
    first = str(error).strip().partition("\n")[0][:200]
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    place = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})" if ours else ""
    return Row(part, what, "", f"failed: {type(error).__name__}{': ' if first else ''}{first}{place}")


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(_ROOT) and "site-packages" not in filename


def _give_memory_back() -> None:
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        with suppress(
            RuntimeError
        ):  # after an error of CUDA nothing works any more, as the next line will say
            torch.cuda.empty_cache()


def markdown(report: Mapping[str, Any]) -> str:
    """The rows of a report as a table, under a sentence with device and versions."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items() if version)
    described = ", ".join(f"{name} {value}" for name, value in report["device"].items() if value)
    lines = [f"{described}; {versions}; {report['seconds']:.0f} s.", ""]
    lines += ["| part | what | found | must be | verdict |", "|---|---|---|---|---|"]
    for row in report["rows"]:
        cells = (row[name] for name in ("part", "what", "found", "criterion", "verdict"))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    verdicts = [row["verdict"].partition(":")[0] for row in report["rows"]]
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in dict.fromkeys(verdicts))
    return "\n".join([*lines, "", f"{len(verdicts)} lines: {counts}."]) + "\n"
