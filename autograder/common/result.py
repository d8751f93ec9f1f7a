"""What a check comes to: a result with its reason, and with the measured speedup where the clock was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "fail", "inconclusive", "stopped", "error", "not_attempted"]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a verdict is what it is, in parts; those that are empty are not said.

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

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Head and text of each line, in order; the head is "" where none stands before it."""
        parts = [("", self.note), ("Expected", self.expected), ("Got", self.got), ("Likely", self.likely)]
        parts += [("Next", self.next), ("", self.after), ("Clock", self.clock)]
        return [
            ("" if number else head, line)
            for head, text in parts
            for number, line in enumerate(text.splitlines())
        ]

    def __str__(self) -> str:
        return "\n".join(f"{head}: {text}" if head else text for head, text in self.lines)


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
