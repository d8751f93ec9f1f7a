"""The check of exercise 7.5: adapters that start as nothing, learn as much, and cost little."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_equal

FEWER = 10.0
TOLERANCE_POINTS = 3.0
NUM_TOPICS, WORDS, WIDTH, ON_TOPIC = 12, 600, 16, 10


def check_add_lora(job: Job) -> None:
    """7.5: starts as its base, trains adapters and head alone, 10× fewer, merges, and is as good as the whole."""
    _require_formula(job)
    answer = job.learner().call("adapted", seed=job.seed(), rank=4, alpha=8.0)
    _require_start(job, answer)
    _require_frozen(job, answer)
    _require_merged(job, answer)
    _require_quality(job)


def _require_formula(job: Job) -> None:
    for rank, alpha in ((2, 8.0), (3, 3.0)):
        sizes = {"wide": int(job.rng.integers(12, 17)), "narrow": int(job.rng.integers(6, 10))}
        answer = job.learner().call("one_layer", seed=job.seed(), rank=rank, alpha=alpha, **sizes)
        shapes = sorted(list(matrix.shape) for matrix in answer["matrices"])
        a, b = (_oriented(answer["matrices"], rank, sizes[side]) for side in ("wide", "narrow"))
        job.require(
            len(shapes) == 2 and a is not None and b is not None,
            expected=f"two trainable matrices beside the layer, {rank} × {sizes['wide']} and "
            f"{sizes['narrow']} × {rank}",
            got=f"trainable parameters of shapes {shapes}"[:200],
            likely="LoRA base not frozen: the layer's own weight or bias still asks for a gradient"
            if [sizes["narrow"], sizes["wide"]] in shapes or [sizes["narrow"]] in shapes
            else "no adapter beside the layer, or one matrix of full size",
            look="A takes the input down to `rank` numbers, B takes those up to the output",
        )
        product = b @ a.T  # [narrow, rank] · [rank, wide]
        right = alpha / rank * product
        got = answer["added"]
        likely = "the order of the two products, or something else that is added"
        for factor, why in ((1.0, "is not scaled"), (alpha, "is not divided by the rank")):
            if factor != alpha / rank and np.allclose(got, factor * product, rtol=1e-3, atol=1e-3):
                likely = f"the product of the adapters {why}: it counts alpha / rank"
        job.require(
            bool(np.allclose(got, right, rtol=1e-3, atol=1e-3)),
            expected=f"the layer to add {alpha / rank:.3g} · B A x (alpha {alpha:g}, rank {rank}) to its output",
            got=f"something {np.linalg.norm(got) / np.linalg.norm(right):.3g} times as large",
            likely=likely,
            look="y = base(x) + alpha / rank · B A x",
        )


def _oriented(matrices: list[np.ndarray], rank: int, size: int) -> Any:
    """The matrix of these two sizes as [size, rank], however its owner stores it."""
    for matrix in matrices:
        if matrix.shape == (size, rank):
            return matrix
        if matrix.shape == (rank, size):
            return matrix.T
    return None


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
        got="a frozen head",
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
        answer["num_merged"] == answer["num_linears"],
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
