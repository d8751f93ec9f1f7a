"""What 10.2 asks of the predictions on secret texts, after a training of many."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from autograder.engine import Job, at_once
from autograder.lessons.checking import HEAD_START, compare_paired
from autograder.lessons.lesson_10 import baselines
from autograder.lessons.lesson_10.checks.tables import secret_split
from autograder.lessons.lesson_10.checks.told_training import learnt_of

NUM_TRAIN, NUM_UNSEEN, NUM_EPOCHS = 480, 320, 3
MARGIN = 2.0  # points
# Standard deviation over seeds of (accuracy of the reference - accuracy of the baseline), in points.
SPREAD = 4.7  # over 12 seeds
NUM_LONG, SHORT = 24, 12  # texts; words


def drawn_size(job: Job) -> int:
    """Texts of a training as long as the timed ones usually are: their number tells nothing."""
    return int(job.rng.integers(81, 161))


def num_others(some: list[str], labels: list[str]) -> int:
    return sum(a != b for a, b in zip(some, labels, strict=False)) + abs(len(some) - len(labels))


def require_quality(job: Job) -> None:
    own, theirs = job.learner(), job.worker("the same training", baselines.SAME_TRAINING)
    accuracies: list[tuple[float, float]] = []

    def difference() -> float:
        job.progress("Comparing predictions on secret texts with the baseline's", len(accuracies) / 32)
        texts, labels, unseen, right = secret_split(job, NUM_TRAIN, NUM_UNSEEN)
        arguments: dict[str, Any] = {
            "texts": texts,
            "labels": labels,
            "unseen": unseen,
            "num_epochs": NUM_EPOCHS,
            "seed": job.seed() % 1000,
            "long": [] if accuracies else _long_ones(unseen, right),
            "short": [" ".join(text.split()[:SHORT]) for text in unseen[::2]],
        }

        both = at_once(
            *(partial(worker.call, "predictions", seconds=120.0, **arguments) for worker in (own, theirs))
        )
        learnt = learnt_of(own.told.call, texts, labels)
        require_all_learnt(job, learnt.num_rows, NUM_EPOCHS, NUM_TRAIN)
        _require_own_label(job, both[0])
        job.require(
            len(both[0]["labels"]) == len(unseen),
            expected=f"one label for each of {len(unseen)} texts",
            got=f"{len(both[0]['labels'])}",
            likely="with many texts some are left out, or answered once where they stand twice",
            look="`predict` gives as many labels as it gets texts",
        )
        found, needed = (100 * float(np.mean(np.array(one["labels"]) == right)) for one in both)
        accuracies.append((found, needed))
        # A better model is no suspicion here: the model is free, and the texts cannot be looked up.
        return min(accuracies[-1][0] - accuracies[-1][1], HEAD_START)

    outcome, _ = compare_paired(difference, margin=MARGIN, spread=SPREAD)
    job.counts["accuracy_points"] = round(float(np.mean([a for a, _ in accuracies])), 1)
    job.counts["baseline_accuracy_points"] = round(float(np.mean([b for _, b in accuracies])), 1)
    job.require(
        outcome != "worse",
        expected=f"an accuracy on secret texts within {MARGIN:g} points of the naive training's "
        f"({job.counts['baseline_accuracy_points']} %)",
        got=f"{job.counts['accuracy_points']} %",
        likely="the training learns less: fewer updates, texts cut short, labels mixed up, or weights left untrained",
        look="print accuracy on the training texts first: is it low there too?",
    )


def _long_ones(texts: list[str], labels: np.ndarray) -> list[str]:
    """Texts that begin like one label and go on, for far longer, like another."""
    long = []
    for number in range(NUM_LONG):
        others = [text for text, label in zip(texts, labels, strict=True) if label != labels[number]]
        long.append(" ".join([*texts[number].split()[:SHORT], *others[number::NUM_LONG][:3]]))
    return long


def _require_own_label(job: Job, answer: dict[str, Any]) -> None:
    others = num_others(answer["among"], answer["alone"])
    job.require(
        others <= 2,  # as above
        expected="the same label of a long text, alone and among short ones",
        got=f"{others} of {len(answer['alone'])} that are others",
        likely="what is read of a text depends on those beside it, such as a width that is taken from the lengths of "
        "all that are asked",
        look="how long may a text be before its end is cut off, and who decides that?",
    )


def require_all_learnt(job: Job, num_learnt: float, num_epochs: int, num_texts: int) -> None:
    """`num_learnt`: rows that were learnt, as a multiple of the texts; 0 of a training without torch's gradients."""
    job.require(
        not num_learnt or num_learnt > num_epochs - 1e-6,
        expected=f"{num_epochs} passes over all of the {num_texts} texts",
        got=f"{num_learnt:.2f}, as rows of logits or of a loss are counted",
        likely="some texts are left out of every pass, such as those of the last short batch, or some that are set "
        "aside to validate on",
        look="count the rows of all batches of an epoch: are they as many as there are texts?",
    )


def require_majority(job: Job, texts: list[str]) -> None:
    """One epoch learns something; and of a text that stands there with two labels the usual one is learnt."""
    texts = list(dict.fromkeys(" ".join(text.split()[:8]) for text in texts))[:20]
    one, other_way, four = job.learner().call(
        "by_majority", texts=texts, seed=job.seed() % 1000, seconds=60.0
    )
    job.require(
        one != other_way,
        expected=f"other labels of {len(texts)} texts after a training in which their labels have changed places",
        got="the same ones, after 1 epoch of 20 times as many texts",
        likely="one epoch too few: they are counted from 1 up to `num_epochs`, which does not belong to a `range`",
        look="print the number of each epoch, for `num_epochs=1`",
    )
    usual = four.count("B")
    job.require(
        2 * usual > len(texts),
        expected="the label that each text has in 18 of the 20 places in which it stands",
        got=f"that of the first and the last place, for {len(texts) - usual} of {len(texts)} texts",
        likely="a text that stands in several places is learnt once, with one of its labels, as where the texts are "
        "the keys of a dict",
        look="a pass goes over all rows, also those whose text has come before",
    )


def require_each_learnt(job: Job) -> None:
    """Where each text has a label of its own, and losses are torch's of such numbers: whether each was learnt."""
    texts, *_ = secret_split(job, drawn_size(job), 0)
    num_epochs, different = 2, list(dict.fromkeys(texts))
    job.learner().call(
        "learnt_by_label", texts=different, num_epochs=num_epochs, seed=job.seed() % 1000, seconds=60.0
    )
    if told := job.learner().told.call.seen["targets"]:
        often = sum(number >= num_epochs for number in Counter(itertools.chain(*told)).values())
        job.require(
            often == len(different),
            expected=f"each of {len(different)} texts learnt {num_epochs} times in {num_epochs} passes",
            got=f"{often} of them, as labels in the loss are counted",
            likely="some texts are left out of every pass, or of some, as where they are drawn with replacement: "
            "others come twice",
            look="an epoch is a permutation: each text once, in random order",
        )


def require_own_in_company(job: Job, words: list[str]) -> None:
    """Of texts of one word or two: each has a label of its own, whichever are asked with it, and keeps it."""
    (alone, among, later), apart, together, empty = job.learner().call("in_company", words=words, seed=3)
    job.require(
        alone == among,
        expected="the same label of a long text, whether it is asked alone or among short ones",
        got="another one",
        likely="what is said of a text depends on those beside it: a width that is taken from the lengths of all, so "
        "that its end is cut off",
        look="ask for the longest text alone, then among sixty of one word",
    )
    job.require(
        apart == together,
        expected="the same label of a text, whether it is asked alone or beside one that is equal but for the case",
        got="another one",
        likely="texts that are nearly equal are taken for one another: each has the answer of the first",
        look="ask for a text, for the same one in capitals, and for both in one list",
    )
    job.require(
        len(set(empty)) == 1,
        expected="the same label of an empty text, whether it is asked alone or beside others",
        got="other ones beside other texts",
        likely="an empty text is given something of its neighbour's, as by `np.add.reduceat`: where there is nothing "
        "to sum, it takes the next element",
        look="ask for an empty text alone, then ahead of two texts that have two labels",
    )
    job.require(
        later == alone,
        expected="a function that gives the labels of its own training, also after another one of as many labels",
        got="the labels of the other one",
        likely="model, names, words or tokenizer are global: a second training takes the place of the first one's, "
        "or adds to them",
        look="keep what `predict` needs in variables of the function, or in an object of its own",
    )
