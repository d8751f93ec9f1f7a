"""The check of exercise 7.5: adapters that start as nothing, learn as much, and cost little."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_equal

SETTINGS = ((2, 7.0), (3, 5.0), (4, 10.0), (1, 0.25), (2, 3.0), (3, 8.0), (9, 4.0))
"""Rank and alpha: whatever is made of them wrongly for the first gives another number."""
FEWER = 10.0
EXACT = {"float32": 1e-4, "float64": 1e-9}
ROUNDED = "computed in another precision than the base's, and cast back: what is lost on the way does not come again"
TOLERANCE_POINTS = 3.0
NUM_TOPICS, WORDS, WIDTH, ON_TOPIC = 12, 600, 16, 10


def check_add_lora(job: Job) -> None:
    """7.5: starts as its base, trains adapters and head alone, 10× fewer, merges, and is as good as the whole."""
    for case, answer in zip(cases := _cases(job), job.learner().call("layers", cases=cases), strict=True):
        _require_returned(job, answer)
        _require_formula(job, case, answer)
        _require_plain(job, case, answer)
    _require_place(job)
    answer = job.learner().call("adapted", seed=job.seed(), rank=int(job.rng.integers(1, 5)), alpha=8.0)
    _require_returned(job, answer)
    _require_start(job, answer)
    _require_frozen(job, answer)
    _require_merged(job, answer)
    _require_quality(job)


def _cases(job: Job) -> list[dict[str, Any]]:
    """Layers that are wider or narrower behind than before, without a bias, and with the head's name in another place;
    models that are frozen already, and in either mode."""
    names = ["feed_forward_in", "feed_forward_out", "query_key_value", "feed_forward_in", "head", "head_mix"]
    names.append("feed_forward_out")  # with more columns than the others
    return [
        {
            "seed": job.seed(),
            "rank": rank,
            "alpha": alpha,
            "d_model": 2 * int(job.rng.integers(3, 7)),
            "name": name if name == "head_mix" else f"blocks.{int(job.rng.integers(2))}.{name}",
            "is_frozen": number % 2 == 1,
            "dtype": "float64" if number in (2, 5) else "float32",
        }
        for number, (name, (rank, alpha)) in enumerate(zip(names, SETTINGS, strict=True))
    ]


def _require_returned(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        not answer["returned"],
        expected="the model that was given, with adapters in it",
        got=answer["returned"],
        likely="nothing is returned, or a copy is adapted in the model's place",
        look="`return model`",
    )


def _require_formula(job: Job, case: dict[str, Any], answer: dict[str, Any]) -> None:
    rank, alpha = case["rank"], case["alpha"]
    wide, narrow = answer["start"].shape  # in, out
    shapes = sorted(list(matrix.shape) for matrix in answer["matrices"])
    a, b = (_oriented(answer["matrices"], rank, size) for size in (wide, narrow))
    likely = "one matrix of full size, where a product of two small ones is asked for"
    if not shapes and "head" in case["name"]:
        likely = (
            "a layer is left out for its name: `model.head` alone is, not others with `head` in their names"
        )
    elif not shapes:
        likely = "a kind of layer is left out: this one has no adapter, or one that does not learn"
    elif answer["is_base_learning"] or [narrow, wide] in shapes:
        likely = "LoRA base not frozen: the layer's own weight or bias still asks for a gradient"
    elif len(shapes) > 2:
        likely = "more than A and B learns: a bias or a scale of the adapter"
    elif len(shapes) == 2 and not (a is not None and b is not None):
        likely = "adapters of another rank than asked for"
    job.require(
        len(shapes) == 2 and a is not None and b is not None,
        expected=f"two trainable matrices beside {case['name']}, {rank} × {wide} and {narrow} × {rank}",
        got=f"trainable parameters of shapes {shapes}"[:200],
        likely=likely,
        look="A takes the input down to `rank` numbers, B takes those up to the output",
    )
    job.require(
        set(answer["dtypes"]) == {case["dtype"]},
        expected=f"adapters of {case['dtype']}, as their base",
        got=f"{', '.join(answer['dtypes'])}",
        likely="adapters of another dtype than their base's: they need other memory, and cast at every step",
        look="`base.weight.new_empty(...)` has the base's dtype and device",
    )
    job.require(
        bool(np.allclose(answer["start"], 0.0, atol=1e-5)),
        expected="a layer that starts as its base",
        got=f"outputs that are away from the base's by up to {np.abs(answer['start']).max():.3g}",
        likely="adapters not zero-initialised: the model starts as another one than was pretrained",
        look="which of the two matrices may be random, so that their product is still 0?",
    )
    job.require(
        0 in answer["lacking"],
        expected=f"a start of which the {rank} rows can learn {rank} different things",
        got=f"a matrix whose rank is {min(answer['lacking'])} less" if answer["lacking"] else "zeros alone",
        likely="all rows of A are the same, or multiples: they get the same gradients, and the adapter stays of rank 1"
        if answer["lacking"]
        else "both matrices are zero, so that neither gets a gradient",
        look="draw each element of A for itself",
    )
    product = b @ a.T  # [out, rank] · [rank, in]
    right = alpha / rank * product
    got = answer["added"]
    likely = "the order of the two products, or something else that is added or left out, such as by dropout"
    if np.allclose(got, right, rtol=1e-3, atol=1e-3):
        likely = ROUNDED
    for factor, why in (
        (1.0, "is not scaled"),
        (alpha, "is not divided by the rank"),
        (1.0 / rank, "is not multiplied by alpha"),
        (alpha // rank, "is scaled by a whole number"),
        *((other_alpha / other, "is scaled as another model's") for other, other_alpha in SETTINGS),
    ):
        if factor != alpha / rank and np.allclose(got, factor * product, rtol=1e-3, atol=1e-3):
            likely = f"the product of the adapters {why}: it counts alpha / rank"
            break
    job.require(
        bool(np.allclose(got, right, rtol=EXACT[case["dtype"]], atol=EXACT[case["dtype"]])),
        expected=f"the layer to add {alpha / rank:.3g} · B A x (alpha {alpha:g}, rank {rank}) to its output",
        got=f"something {np.linalg.norm(got) / np.linalg.norm(right):.3g} times as large",
        likely=likely,
        look="y = base(x) + alpha / rank · B A x",
    )
    job.require(
        answer["is_head_trained"],
        expected="a head that learns, its weight and its bias, whatever was frozen before",
        got="a frozen head, or half of one",
        likely="the head is frozen with the base, or was before, and must be told",
        look="`requires_grad_(True)` for the parameters of `model.head`",
    )
    job.require(
        answer["is_mode_kept"],
        expected="a model in the mode that it was given in",
        got="one in the other mode, or with a part in it",
        likely="`eval()` or `train()` was called on the way, and not taken back",
        look="putting in adapters needs no mode",
    )


def _require_place(job: Job) -> None:
    found = job.learner().call("devices", rank=int(job.rng.integers(1, 5)), alpha=8.0)
    job.require(
        found == ["meta"],
        expected='all parameters on the device of the base, here "meta"',
        got=", ".join(found),
        likely="adapters on the CPU, wherever their base is: on a GPU the first forward pass fails",
        look="`base.weight.new_empty(...)` has the base's dtype and device",
    )


def _require_plain(job: Job, case: dict[str, Any], answer: dict[str, Any]) -> None:
    job.require(
        not answer["not_plain"],
        expected="a plain nn.Linear from `merged()`",
        got=answer["not_plain"],
        likely="`merged` is missing, or returns the adapted layer itself, a weight or nothing",
        look="type(layer.merged()) is nn.Linear",
    )
    job.require(
        answer["merged_dtype"] == case["dtype"],
        expected=f"a merged layer of {case['dtype']}, as the base",
        got=answer["merged_dtype"],
        likely="the merged layer has the default dtype: it cannot take what the adapted one took",
        look="`nn.Linear(..., dtype=base.weight.dtype, device=base.weight.device)`, or the base itself",
    )
    right = case["alpha"] / case["rank"] * _product(case, answer)
    job.require(
        bool(np.allclose(answer["merged"], right, rtol=EXACT[case["dtype"]], atol=EXACT[case["dtype"]]))
        and answer["is_bias_kept"],
        expected="a merged layer with the weight W + alpha / rank · B A, and the base's bias",
        got=f"a weight {np.linalg.norm(answer['merged']) / np.linalg.norm(right):.3g} times as far from W"
        if answer["is_bias_kept"]
        else "another bias",
        likely=ROUNDED
        if answer["is_bias_kept"] and np.allclose(answer["merged"], right, rtol=2e-2, atol=2e-2)
        else "the merged weight is not W + alpha / rank · B A"
        if answer["is_bias_kept"]
        else "a bias where the base has none, left at random"
        if case["name"].endswith(".head")
        else "the bias is lost",
        look="what does the adapted layer add, written as one matrix?",
    )


def _oriented(matrices: list[np.ndarray], rank: int, size: int) -> Any:
    """The matrix of these two sizes as [size, rank], however its owner stores it."""
    for matrix in matrices:
        if matrix.shape == (size, rank):
            return matrix
        if matrix.shape == (rank, size):
            return matrix.T
    return None


def _product(case: dict[str, Any], answer: dict[str, Any]) -> Any:
    """B A as it stands, [out, in]."""
    a, b = (_oriented(answer["matrices"], case["rank"], size) for size in answer["start"].shape)
    return b @ a.T


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
