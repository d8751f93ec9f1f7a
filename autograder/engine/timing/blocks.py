"""A block of a measurement as evidence keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from autograder.engine.timing.verdict import MAX_BLOCKS, Decision, decide, is_surely_below

if TYPE_CHECKING:
    from course_lib.measuring import Block


@dataclass(frozen=True, kw_only=True)
class KeptBlock:
    """A block without its seeds, which stay secret.

    Attributes:
        part: which measurement of an exercise with several it belongs to; "" where there is one.
        order, seconds, num_steps, y: as in a `Block`.
    """

    part: str = ""
    order: str
    seconds: tuple[float, ...]
    num_steps: int
    y: float

    @property
    def is_short(self) -> bool:
        """Of two segments, which say no more than that the solution is slower than the baseline, or not."""
        return len(self.seconds) == 2

    @classmethod
    def of(cls, block: Block, part: str = "") -> KeptBlock:
        """What is kept of a block."""
        return cls(part=part, order=block.order, seconds=block.seconds, num_steps=block.num_steps, y=block.y)

    @classmethod
    def of_dict(cls, entry: Mapping[str, Any]) -> KeptBlock:
        """From `to_dict`. Raises `TypeError`, `KeyError` or `ValueError` for anything else."""
        return cls(
            part=entry.get("part", ""),
            order=entry["order"],
            seconds=tuple(entry["seconds"]),
            num_steps=entry["num_steps"],
            y=float(entry["y"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values; the part is absent where there is one."""
        found = asdict(self) | {"seconds": list(self.seconds)}
        if not self.part:
            del found["part"]
        return found


def are_surely_below(blocks: Sequence[KeptBlock], speedup: float) -> bool:
    """`is_surely_below` on blocks as they are kept."""
    return is_surely_below(
        [block.y for block in blocks], speedup, are_short=[block.is_short for block in blocks]
    )


def decide_on(
    blocks: Sequence[KeptBlock], bar: float, *, seconds: float = 0.0, max_blocks: int = MAX_BLOCKS
) -> Decision:
    """`decide` on blocks as they are kept."""
    are_short = [block.is_short for block in blocks]
    values = [block.y for block in blocks]
    return decide(values, bar, are_short=are_short, seconds=seconds, max_blocks=max_blocks)
