"""Wrong solutions of 10.2."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited
from autograder.lessons.lesson_10.baselines import NAIVE_TRAINING
from autograder.lessons.lesson_10.references import TRAIN_CLASSIFIER

_TRAIN = edited(TRAIN_CLASSIFIER, ("def train_classifier", '@exercise("10.2")\ndef train_classifier'))
_STEP = "            train_step(model, collate([(ids[i], number[labels[i]]) for i in indices]), optimizer)\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "10.2": (
        Mutant(
            name="one update an epoch",
            source=edited(_TRAIN, (_STEP, _STEP + "            break\n")),
            says="the training learns less",
        ),
        Mutant(
            name="texts cut at four tokens",
            source=edited(_TRAIN, ("e.ids[:WIDTH]", "e.ids[:4]")),
            says="the training learns less",
        ),
        Mutant(
            name="predictions in the order of length",
            source=edited(_TRAIN, ("found[i] = names[best]", "found[order.index(i)] = names[best]")),
            says="the training learns less",
        ),
        Mutant(
            name="class numbers instead of names",
            source=edited(_TRAIN, ("found[i] = names[best]", "found[i] = best")),
            says="class numbers instead of names",
        ),
        Mutant(
            name="the tail of the texts left out",
            source=edited(
                _TRAIN, ("        return found\n", "        return found[: len(rows) // 16 * 16]\n")
            ),
            says="the tail of the last batch is dropped",
        ),
        Mutant(
            name="untrained under the clock",
            source=edited(_TRAIN, ("    torch.manual_seed(seed)\n", "    num_epochs *= len(texts) > 400\n")),
            says="under the clock less is trained",
            is_timed=True,
        ),
        Mutant(
            name="padding to a global maximum",
            source=edited(
                NAIVE_TRAINING, ("def train_classifier", '@exercise("10.2")\ndef train_classifier')
            ),
            says="padding, tokenising again",
            is_timed=True,
        ),
    ),
}
