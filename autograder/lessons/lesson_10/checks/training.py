"""The check of exercise 10.2: a whole training, judged by its predictions on secret texts, and by the clock."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Inconclusive, Job, TooSlow, measure_speedup
from autograder.lessons.lesson_10.checks.tables import secret_split
from autograder.lessons.lesson_10.checks.timed_training import (
    Gains,
    gains_of,
    require_learnt,
    require_timed_rows,
)
from autograder.lessons.lesson_10.checks.told_training import Learnt, learnt_of
from autograder.lessons.lesson_10.checks.training_quality import (
    drawn_size,
    num_others,
    require_all_learnt,
    require_each_learnt,
    require_majority,
    require_own_in_company,
    require_quality,
)


def check_train_classifier(job: Job) -> None:
    """10.2: as good as the naive training on texts nobody has seen, in two thirds of its time at most."""
    job.corpus()
    are_rows_counted = _require_predictions(job)
    require_quality(job)
    gains: list[Gains] = []

    def compare(baseline: dict[str, Any], learner: dict[str, Any]) -> None:
        require_timed_rows(job, baseline, learner, are_counted=are_rows_counted)
        gains.append(gains_of(job, baseline, learner))

    try:
        measure_speedup(
            job,
            function="segment",
            compare=compare,
            likely="the time goes where lesson 01 found it: padding, tokenising again, a sync and a slow collate each "
            "step",
            look="time the stations of one epoch; then `help(course_lib.BucketBatchSampler)`",
            review_from=math.inf,  # the model is free, and some learn far faster than ours
        )
    except (Inconclusive, TooSlow):  # on the clock, and not on this
        require_learnt(job, gains)
        raise
    require_learnt(job, gains)


def _require_predictions(job: Job) -> bool:
    """Two trainings in one process, of other labels and another number of epochs, both again, and the first one once
    more where Python is started anew. That has the seed 0; the second one learns words of which the first was asked.

    Returns whether a module was seen to make logits.
    """
    cases: list[dict[str, Any]] = []
    sizes = int(job.rng.integers(32, 48)), int(job.rng.integers(40, 64))  # as a short timed training may have
    for number, (num_texts, num_epochs) in enumerate(zip(sizes, (4, 1), strict=True)):
        texts, labels, unseen, _ = secret_split(job, num_texts, 31)
        # Many labels in the first, so that no order of a set is the right one by chance.
        kinds = "ABCD" if not number else "A"
        labels = [f"{label}, {number}{kinds[at % len(kinds)]}" for at, label in enumerate(labels)]
        if not number:
            labels = [f" {label} " for label in labels]
        unseen[0] = " ".join(unseen[:8])  # longer than any of `texts`
        unseen.insert(int(job.rng.integers(1, len(unseen))), "")
        unseen.append(unseen[int(job.rng.integers(1, len(unseen)))])  # who asks twice has two answers
        seed = job.seed() % 1000 + 1 if number else 0
        if number:
            texts[:20] = [text for text in cases[0]["unseen"] if text][1:21]
        cases.append(
            {"texts": texts, "labels": labels, "unseen": unseen, "num_epochs": num_epochs, "seed": seed}
        )
    answers = job.learner().call("trained", cases=cases, seconds=60.0)
    told = job.learner().told.call
    learnt = [learnt_of(told, case["texts"], case["labels"], training=at) for at, case in enumerate(cases)]
    for case, answer in zip(cases, answers, strict=True):
        _require_labels(job, case, answer)
    first, second = answers
    updates, updates_of_one = (each.num_steps for each in learnt)
    job.require(
        first["later"] == first["labels"],
        expected="a function that gives the labels of its own training, also after another one",
        got=first["trouble"]
        or f"{num_others(first['later'], first['labels'])} of {len(first['labels'])} that are others",
        likely="model, names, words or tokenizer are global: a second training takes the place of the first one's, "
        "or adds to them",
        look="keep what `predict` needs in variables of the function, or in an object of its own",
    )
    job.require(
        updates_of_one > 0 or not updates,
        expected="updates in a training of 1 epoch",
        got=f"none, and {updates} in 4 epochs",
        likely="one epoch too few: they are counted from 1 up to `num_epochs`, which does not belong to a `range`",
        look="print the number of each epoch, for `num_epochs=1`",
    )
    job.require(
        not updates or updates > updates_of_one,
        expected=f"more updates in 4 epochs of {sizes[0]} texts than in 1 of {sizes[1]}",
        got=f"{updates}, and {updates_of_one}",
        likely="`num_epochs` is not used: as many epochs are trained, whatever is asked for",
        look="where does `num_epochs` go in?",
    )
    for case, answer, seen in zip(cases, answers, learnt, strict=True):
        _require_own_words(job, case, answer, seen)
    _require_epochs_and_seeds(job, is_seen=any(each.is_seen for each in learnt))
    require_each_learnt(job)
    require_majority(job, texts=[text for case in cases for text in case["texts"]])
    require_own_in_company(job, [max(cases[0]["texts"], key=len).split()[0], "zoffukke"])
    again, again_second = job.learner().call("trained", cases=cases, seconds=60.0)

    def elsewhere(in_order: list[dict[str, Any]]) -> list[list[str]]:
        started = {"source": job.source, "entry": job.entry, "hash_seed": int(job.rng.integers(1, 2**31))}
        found: list[list[str]] = job.learner().call(
            "trained_elsewhere", cases=in_order, seconds=60.0, **started
        )
        return found

    second_there, first_there = elsewhere(cases[::-1])
    hangs_on_order = [first_there, second_there] != [first["labels"], second["labels"]] == elsewhere(cases)
    unseeded = "weights or the order of the texts are drawn before, or without, the seed"
    look_unseeded = "seed torch, and whatever else draws, in the first line"
    of_zero = ", which is 0" if again_second["labels"] == second["labels"] else ""
    for other, labels, where, likely, look in (
        (again["labels"], first["labels"], of_zero, unseeded, look_unseeded),
        (again_second["labels"], second["labels"], "", unseeded, look_unseeded),
        (
            second_there if hangs_on_order else first_there,
            (second if hangs_on_order else first)["labels"],
            ", whether or not another training came before"
            if hangs_on_order
            else " when Python is started again",
            "something of the training before is kept outside the function, such as the tokens of texts seen there"
            if hangs_on_order
            else "`hash()` of a word, or the order of a set: both are new each time Python starts",
            "what a training works out belongs to it: make it within the function"
            if hangs_on_order
            else "number the words in the order of a sorted list; `zlib.crc32` is the same in every process",
        ),
    ):
        job.require(
            other == labels,
            expected=f"the same predictions at the same seed{where}",
            got=f"{num_others(other, labels)} of {len(other)} that are others",
            likely=likely,
            look=look,
        )
    return all(each.num_passes > 0 for each in learnt)


def _require_own_words(job: Job, case: dict[str, Any], answer: dict[str, Any], learnt: Learnt) -> None:
    """No more passes than epochs, lists as they were, and of each text the same whichever is asked with it."""
    job.require(
        learnt.num_passes < 1.5 * case["num_epochs"],
        expected=f"{case['num_epochs']} passes over the texts: as many as epochs",
        got=f"{learnt.num_passes:.1f}",
        likely="more epochs are trained than are asked for",
        look="count the texts that the model sees while it is trained",
    )
    require_all_learnt(job, learnt.num_rows, case["num_epochs"], len(case["texts"]))
    job.require(
        answer["is_kept"],
        expected="lists of texts and labels as they were handed in",
        got="others, or in another order",
        likely="a list is sorted, shuffled or changed in place",
        look="work on a copy: `sorted(texts)`, `list(texts)`",
    )
    others = num_others(answer["apart"], answer["labels"])
    job.require(
        others <= 2,  # two that are nearly equal may change places where they are padded to another width
        expected="the same label of a text, whichever others are asked with it",
        got=f"{others} of {len(answer['labels'])} that are others in another order, or alone",
        likely="what is said of a text depends on those beside it: a mean over the batch, padding that is seen, "
        "a width that is taken from the lengths of all, or answers in another order than the questions",
        look="ask for the first text alone, then among others",
    )


def _require_epochs_and_seeds(job: Job, *, is_seen: bool) -> None:
    """`is_seen`: whether it learns by torch's gradients, and so by passes; others may need one, and draw nothing."""
    texts, labels, unseen, _ = secret_split(job, drawn_size(job), 80)
    seed = job.seed() % 1000
    seeds = [seed, seed + 1, seed + 7, seed + 1000]
    case = {"texts": texts, "labels": labels, "unseen": unseen, "seed": seed}
    by_epochs, answers = job.learner().call(
        "epochs_and_seeds", case=case, epochs=[1, 4], seeds=seeds, seconds=60.0
    )
    if not is_seen:
        return
    one, four = (sum(row == [at] for row in job.learner().told.call.seen["step"]) for at in range(2))
    job.require(
        not one
        or 3.3 * one - 1 < four < 4.8 * one + 1,  # one more or less, where batches go over an epoch's end
        expected="four times as many updates in 4 epochs as in 1",
        got=f"{four}, and {one}",
        likely="more or fewer epochs are trained than are asked for",
        look="print the number of each epoch",
    )
    job.require(
        by_epochs[0] != by_epochs[1],
        expected="a training that goes on learning: other labels after 4 epochs of 40 texts than after 1",
        got=f"the same {len(unseen)} predictions",
        likely="`num_epochs` is not used: one pass is made, whatever is asked for",
        look="what happens in the second pass that does not happen in the first?",
    )
    job.require(
        any(answer != answers[0] for answer in answers),
        expected="another training at another seed",
        got=f"the same {len(unseen)} predictions at {len(seeds)} seeds",
        likely="`seed` is not used: whatever is asked for, the training starts from the same one",
        look="where does `seed` go in?",
    )


def _require_labels(job: Job, case: dict[str, Any], answer: dict[str, Any]) -> None:
    found, named = answer["labels"], set(case["labels"])
    job.require(
        answer["kind"] == "list",
        expected="a list of labels",
        got=f"a {answer['kind']}",
        likely="the labels stand in something else: `+`, `==` and `index` mean other things there",
        look="print `type(...)` of what `predict` returns",
    )
    job.require(
        len(found) == len(case["unseen"]),
        expected=f"one label for each of {len(case['unseen'])} texts, one of them empty and one twice among them",
        got=f"{len(found)} labels",
        likely="the tail of the last batch is dropped, or empty texts are left out, or a text that stands twice is "
        "answered once, as in a dict of texts",
        look="`predict` gives as many labels as it gets texts",
    )
    job.require(
        not answer["of_none"] and not answer["trouble_of_none"],
        expected="no label for no text",
        got=answer["trouble_of_none"] or f"{len(answer['of_none'])} labels",
        likely="an empty list of texts is not thought of: there is nothing to stack, to pad or to cut into batches",
        look="`predict([])` gives []",
    )
    job.require(
        set(found) <= named,
        expected="labels as they stand in the table: " + "; ".join(sorted(named)),
        got="; ".join(sorted(set(found) - named)[:3]),
        likely="the names of labels are cleaned, as of the spaces around them"
        if set(found) <= named | {name.strip() for name in named}
        else "class numbers instead of names",
        look="keep the list of names, and look each number up in it",
    )
