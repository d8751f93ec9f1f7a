"""How much a training learns, by what was told of it as it happened; nothing of one without torch's gradients."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.engine.told import ToldOfCall


@dataclass(frozen=True)
class Learnt:
    """A training in numbers.

    Attributes:
        num_steps: updates of torch's optimizers; 0 for a training that has its own.
        num_passes: those over the texts by the module that makes logits of the fewest; 0 where none is seen to.
        num_rows: rows of logits or of a loss, as a multiple of the texts; 0 where none could be counted.
    """

    num_steps: int
    num_passes: float
    num_rows: float

    @property
    def is_seen(self) -> bool:
        """Whether it learns by torch's gradients."""
        return bool(self.num_steps or self.num_rows)


def learnt_in(told: ToldOfCall, num_labels: int, num_different: int, *, training: int = 0) -> Learnt:
    """What was told of one of the trainings in a call.

    Args:
        num_labels, num_different: of its texts.
    """
    seen = {
        name: [row[1:] for row in told.seen[name] if row[0] == training] for name in ("step", "loss", "rows")
    }
    made = dict[float, float]()
    for module, width, rows in seen["rows"]:
        if width == num_labels:
            made[module] = made.get(module, 0.0) + rows
    passes = [rows / num_different for rows in made.values()]
    in_losses = sum(rows for (rows,) in seen["loss"]) / num_different
    return Learnt(len(seen["step"]), min(passes, default=0.0), max(*passes, in_losses, 0.0))


def learnt_of(told: ToldOfCall, texts: list[str], labels: list[str], *, training: int = 0) -> Learnt:
    """The same of a training on these texts."""
    different = len(set(zip(texts, labels, strict=True)))
    return learnt_in(told, len(set(labels)), different, training=training)
