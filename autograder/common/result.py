"""What a check comes to: a result with its reason, and with the measured speedup where the clock was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from autograder.common.texts import cut, marked, one_line, printable

MAX_REASON_BYTES = 4_000  # of a reason as it is said, heads included
_MAX_LOOKS = 20  # lines for a person to look at, of one result
CHECKS_WITHOUT_RESULT = "checks_without_a_result"
"""Count of a result: how often in a row there was none, so that the check is not asked for without end."""
Verdict = Literal["pass", "fail", "inconclusive", "stopped", "error", "not_attempted"]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a verdict is what it is, in parts; those that are empty are not said.

    A part may quote what a learner wrote: each is `printable` and `marked`, and together they are no longer than
    `MAX_REASON_BYTES`; the longest part is cut, and says so.

    Attributes:
        note: what is said first, by itself.
        expected, got: what a right solution gives, and what came.
        likely: the mistake that was probably made.
        next: what to look at.
        after: what is said last, by itself.
        clock: why the clock had no say.
    """

    note: str = ""
    expected: str = ""
    got: str = ""
    likely: str = ""
    next: str = ""
    after: str = ""
    clock: str = ""

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        parts = {name: marked(printable(text[:MAX_REASON_BYTES])) for name, text in given.items()}
        left = MAX_REASON_BYTES
        is_whole = sum(_cost(name, text) for name, text in parts.items()) <= left
        by_length = sorted(parts, key=lambda name: len(parts[name].encode()))
        for number, name in enumerate(by_length):  # what a short one does not need is left to the longer ones
            share = left // (len(by_length) - number) - _cost(name, "") - _ROOM
            text = parts[name] if is_whole else marked(cut(parts[name], share, len(given[name])))
            left -= _cost(name, text)
            object.__setattr__(self, name, text)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Head and text of each line, in order; the head is "" where none stands before it."""
        return [
            ("" if number else head, line)
            for name, head in _HEADS.items()
            for number, line in enumerate(getattr(self, name).splitlines())
        ]

    def __str__(self) -> str:
        return "\n".join(f"{head}: {text}" if head else text for head, text in self.lines)


_HEADS = {
    "note": "",
    "expected": "Expected",
    "got": "Got",
    "likely": "Likely",
    "next": "Next",
    "after": "",
    "clock": "Clock",
}
"""What each part of a reason begins with, in the order in which they are said."""
_ROOM = 8  # bytes for a mark that was cut in two and is put there again


def _cost(name: str, text: str) -> int:
    """Bytes of a part as it is said."""
    return len(f"{_HEADS[name]}: {text}\n".encode())


@dataclass(frozen=True, kw_only=True)
class Speed:
    """A measured speedup, baseline time / candidate time.

    Attributes:
        estimate, low, high: with its 95 % interval.
        bar: what is asked for.
        blocks: how many paired measurements it rests on.
        spread: of a block, as a share of its time.
        ratios: the speedup of each block.
        attempts: verdicts that the clock has come to for this code on this machine; None while it is not known.
    """

    estimate: float
    low: float
    high: float
    bar: float
    blocks: int
    spread: float
    ratios: tuple[float, ...]
    attempts: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For evidence files and between processes."""
        found = asdict(self) | {"ratios": list(self.ratios)}
        if self.attempts is None:
            del found["attempts"]
        return found

    def public(self) -> dict[str, float]:
        """For `--json`."""
        return {name: getattr(self, name) for name in ("estimate", "low", "high", "bar", "blocks")}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What the check of one exercise came to.

    Attributes:
        id, title: of the exercise.
        score: points earned, of `max_score`.
        counts: noise-free costs by name.
        sandbox: the level that was proven; None where nothing ran.
        evidence: path of the evidence file; None where there is none.
        review: reasons for a person to look at the solution; they cost no points.
        seconds: that the check took.
    """

    id: str
    title: str = ""
    score: float = 0
    max_score: float = 0
    verdict: Verdict
    reason: Reason
    speedup: Speed | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    sandbox: str | None = None
    evidence: str | None = None
    review: tuple[str, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        looks = [one_line(why) for why in self.review]
        if len(looks) > _MAX_LOOKS:
            looks[_MAX_LOOKS - 1 :] = [f"and {len(looks) - _MAX_LOOKS + 1} more like these"]
        object.__setattr__(self, "review", tuple(looks))

    def to_dict(self) -> dict[str, Any]:
        """For evidence files: the reason is a text."""
        return {
            **{name: getattr(self, name) for name in ("id", "title", "score", "max_score", "verdict")},
            "reason": str(self.reason),
            "speedup": self.speedup.to_dict() if self.speedup else None,
            "counts": dict(self.counts),
            "sandbox": self.sandbox,
            "evidence": self.evidence,
            "review": list(self.review),
            "seconds": self.seconds,
        }

    def public(self) -> dict[str, Any]:
        """For `--json`: what the card alone needs is left out."""
        found = self.to_dict() | {"speedup": self.speedup.public() if self.speedup else None}
        return {name: value for name, value in found.items() if name not in ("title", "seconds")}

    def to_message(self) -> dict[str, Any]:
        """For another process of ours, and for what grading keeps: nothing is lost."""
        return self.to_dict() | {"reason": asdict(self.reason)}

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> Result:
        """From `to_message`. Raises `TypeError`, `KeyError` or `ValueError` for anything else."""
        speed = message["speedup"]
        return cls(
            **{name: value for name, value in message.items() if name not in ("reason", "speedup", "review")},
            reason=Reason(**message["reason"]),
            speedup=Speed(**speed | {"ratios": tuple(speed["ratios"])}) if speed else None,
            review=tuple(message["review"]),
        )
