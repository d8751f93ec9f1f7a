"""The check of exercise 7.5: adapters that start as nothing, learn as much, and cost little."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_equal
from autograder.lessons.lesson_07.checks.layers import layer_cases, require_formula, require_plain

FEWER = 10.0
TOLERANCE_POINTS = 3.0
NUM_TOPICS, WORDS, WIDTH, ON_TOPIC = 12, 600, 16, 10


def check_add_lora(job: Job) -> None:
    """7.5: starts as its base, trains adapters and head alone, 10× fewer, merges, and is as good as the whole."""
    for case, answer in zip(
        cases := layer_cases(job), job.learner().call("layers", cases=cases), strict=True
    ):
        _require_returned(job, answer)
        require_formula(job, case, answer)
        require_plain(job, case, answer)
    _require_place(job)
    answer = job.learner().call("adapted", seed=job.seed(), rank=int(job.rng.integers(1, 5)), alpha=8.0)
    _require_returned(job, answer)
    _require_start(job, answer)
    _require_frozen(job, answer)
    _require_merged(job, answer)
    _require_quality(job)


def _require_returned(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        not answer["returned"],
        expected="the model that was given, with adapters in it",
        got=answer["returned"],
        likely="nothing is returned, or a copy is adapted in the model's place",
        look="`return model`",
    )


def _require_place(job: Job) -> None:
    found = job.learner().call("devices", rank=int(job.rng.integers(1, 5)), alpha=8.0)
    job.require(
        not found,
        expected='adapters on the device of their base: one block is on "meta", the others on the CPU',
        got=", ".join(found)[:200] + " elsewhere",
        likely="adapters on the CPU, or where the model's first layer is, wherever their base is: the first forward "
        "pass fails",
        look="`base.weight.new_empty(...)` has the base's dtype and device",
    )


def _require_start(job: Job, answer: dict[str, Any]) -> None:
    job.counts["parameters"] = answer["num_before"]
    job.counts["trainable_parameters"] = answer["num_trainable"]
    require_equal(
        job,
        answer["after"],
        answer["before"],
        dtype="float32",
        what="logits right after the adapters were put in",
        likely="adapters not zero-initialised: the model starts as another one than was pretrained",
        look="which of the two matrices may be random, so that their product is still 0?",
    )


def _require_frozen(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        not answer["trainable_of_base"],
        expected="no weight of the base that asks for a gradient",
        got=f"{len(answer['trainable_of_base'])} that do, such as {(answer['trainable_of_base'] or [''])[0]}",
        likely="LoRA base not frozen: embeddings, norms and biases belong to the base too",
        look="freeze all of the model first, then put in what learns",
    )
    job.require(
        answer["is_head_trained"],
        expected="a head that learns: it is new for the task",
        got="a frozen head, or half of one",
        likely="the head is frozen with the base",
        look="`requires_grad_(True)` for the parameters of `model.head`",
    )
    ratio = answer["num_before"] / max(1, answer["num_trainable"])
    job.require(
        ratio >= FEWER,
        expected=f"at least {FEWER:g} times fewer trainable parameters than the {answer['num_before']:,} of the model",
        got=f"{answer['num_trainable']:,}, {ratio:.1f} times fewer",
        likely="adapters of another rank than asked for, or on more than the linear layers",
        look="count A and B of one layer by hand: rank × (in + out)",
    )
    job.require(
        answer["num_trainable"] == answer["num_asked_for"],
        expected=f"{answer['num_asked_for']:,} trainable parameters: A and B of every linear layer, and the head",
        got=f"{answer['num_trainable']:,}",
        likely="a kind of layer is left out, layers share a matrix, or something else asks for a gradient"
        if answer["num_merged"] == answer["num_linears"] or answer["num_trainable"] > answer["num_asked_for"]
        else "a kind of layer is left out: every linear layer but the head has its adapter",
        look="rank × (in + out) for each layer, and the head's weight and bias",
    )
    job.require(
        not answer["changed_of_base"],
        expected="the base's weights as they were, after four steps",
        got=f"{len(answer['changed_of_base'])} changed, such as {(answer['changed_of_base'] or [''])[0]}",
        likely="LoRA base not frozen: something writes into its weights while it trains",
        look="merging belongs to the end",
    )
    job.require(
        answer["num_still"] == 0,
        expected="every trainable parameter to move within four steps",
        got=f"{answer['num_still']} of {answer['num_learning']} never do",
        likely="both matrices are zero, so that neither gets a gradient; or an adapter is not used",
        look="the gradient of B is a product with A, and that of A one with B",
    )


def _require_merged(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer["num_merged"] == answer["num_linears"] and not answer["not_plain"],
        expected=f"{answer['num_linears']} adapted layers with a method `merged`: every linear layer but the head",
        got=f"{answer['num_merged']}",
        likely="a kind of layer is left out, or `merged` is missing",
        look="`model.named_modules()`, every `nn.Linear` outside `head`",
    )
    require_equal(
        job,
        answer["merged"],
        answer["trained"],
        dtype="float32",
        what="logits of the merged model",
        likely="the merged weight is not W + alpha / rank · B A, or the bias is lost",
        look="what does the adapted layer add, written as one matrix?",
    )
    job.require(
        answer["num_after"] == answer["num_before"],
        expected=f"{answer['num_before']:,} parameters after merging, as before the adapters",
        got=f"{answer['num_after']:,}",
        likely="the merged layers still carry their adapters",
        look="`merged` returns a plain `nn.Linear`",
    )


def _require_quality(job: Job) -> None:
    task = _task(job)
    held_out, labels = task.pop("held_out"), task.pop("labels")
    answer = job.learner().call("fine_tuned", seed=job.seed(), rank=4, held_out=held_out, **task)
    right = {name: 100.0 * float((logits.argmax(1) == labels).mean()) for name, logits in answer.items()}
    difference = right["adapters"] - right["whole"]
    job.counts["accuracy_difference_points"] = round(difference, 1)
    job.require(
        difference >= -TOLERANCE_POINTS,
        expected=f"an accuracy within {TOLERANCE_POINTS:g} points of training the whole model",
        got=f"{difference:+.1f} points",
        likely="the adapters hardly learn: a start so small that the steps are lost, or a path that is cut",
        look="train your adapters on 32 texts: does the loss go to 0?",
    )


def _task(job: Job) -> dict[str, Any]:
    """Texts of words with topics. Pretraining asks for the main topic, fine-tuning for a group of topics."""
    rng = job.rng
    topics = rng.integers(NUM_TOPICS, size=WORDS)
    groups = rng.permutation(NUM_TOPICS) % 4

    def texts(number: int) -> tuple[np.ndarray, np.ndarray]:
        main = rng.integers(NUM_TOPICS, size=number)
        ids = rng.integers(3, WORDS, size=(number, WIDTH))
        of_topic = [np.flatnonzero(topics[3:] == topic) + 3 for topic in range(NUM_TOPICS)]
        for row, topic in enumerate(main):
            ids[row, :ON_TOPIC] = rng.choice(of_topic[topic], size=ON_TOPIC)
        return rng.permuted(ids, axis=1), main

    base_ids, base_topics = texts(1200)
    ids, topics_of_texts = texts(500)
    held_out, held_out_topics = texts(400)
    return {
        "base_texts": {"ids": base_ids, "labels": base_topics},
        "texts": {"ids": ids, "labels": groups[topics_of_texts]},
        "held_out": held_out,
        "labels": groups[held_out_topics],
    }
