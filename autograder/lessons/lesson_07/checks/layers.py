"""What 7.5 asks of one adapted layer: its formula, its two matrices, and what it merges to."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job

MANY = 9
SETTINGS = ((2, 7.0), (3, 5.0), (4, 10.0), (1, 0.25), (2, 3.0), (3, 8.0), (MANY, 4.0), (2, 0.0))
"""Rank and alpha: whatever is made of them wrongly for the first gives another number."""
TINY = 1e-9
EXACT = {"float32": 1e-4, "float64": 1e-9}
ROUNDED = "computed in another precision than the base's, and cast back: what is lost on the way does not come again"


def layer_cases(job: Job) -> list[dict[str, Any]]:
    """Layers that are wider or narrower behind than before, without a bias, and with the head's name in another place;
    models that are frozen already, and in either mode."""
    names = ["feed_forward_in", "feed_forward_out", "query_key_value", "feed_forward_in", "head", "head_mix"]
    names.append("feed_forward_out")  # with more columns than the others
    names.append("query_key_value")  # at an alpha of 0 it stays as it is
    return [
        {
            "seed": job.seed(),
            "rank": rank,
            "alpha": alpha,
            # Where more columns are asked for than the layer has, it has few.
            "d_model": 2 * int(job.rng.integers(3, 5 if rank == MANY else 7)),
            "name": name if name == "head_mix" else f"blocks.{int(job.rng.integers(2))}.{name}",
            "is_frozen": number % 2 == 1,
            "dtype": "float64" if number in (2, 5) else "float32",
            "is_alone": number == 5,  # with this dtype, in a model of another
        }
        for number, (name, (rank, alpha)) in enumerate(zip(names, SETTINGS, strict=True))
    ]


def require_formula(job: Job, case: dict[str, Any], answer: dict[str, Any]) -> None:
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
    elif answer["is_base_learning"] or (len(shapes) != 2 and [narrow, wide] in shapes):
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
        got=f"something {_times(got, right):.3g} times as large",
        likely=likely,
        look="y = base(x) + alpha / rank · B A x",
    )
    job.require(
        bool(np.allclose(answer["spread"], got, rtol=1e-3, atol=1e-3)) and answer["is_input_kept"],
        expected="the same for inputs of any number of dimensions, and inputs that stay as they are",
        got="another output for [1, rows, 1, in]" if answer["is_input_kept"] else "changed inputs",
        likely="a number of dimensions that is taken for granted: inputs are [..., in]"
        if answer["is_input_kept"]
        else "the inputs are changed in place: other layers read them too",
        look="`nn.Linear` takes any number of dimensions, and changes no input",
    )
    _require_gradients(job, case, answer, a, b)
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
        likely="`eval()` or `train()` was called on the way, and not taken back in each part",
        look="putting in adapters needs no mode",
    )


def _require_gradients(job: Job, case: dict[str, Any], answer: dict[str, Any], a: Any, b: Any) -> None:
    scale, rows, coming = case["alpha"] / case["rank"], answer["rows"], answer["coming"]
    through = coming @ answer["weight"] + scale * coming @ b @ a.T
    pairs = [(answer["gradient"], through)]
    for size, right in ((len(a), rows.T @ coming @ b), (len(b), coming.T @ rows @ a)):
        pairs.append((_oriented(answer["gradients"], case["rank"], size), scale * right))
    cut = [not np.allclose(got, right, rtol=1e-3, atol=1e-3) for got, right in pairs]
    job.require(
        not any(cut),
        expected="gradients of y = base(x) + alpha / rank · B A x",
        got=f"another one of {'x' if cut[0] else 'A or B'}",
        likely="a part of the forward pass is cut off from backward, by `no_grad` or `detach`: frozen weights need no "
        "gradient, but it must go through them, to the layers before",
        look="`requires_grad_(False)` freezes a weight; what is computed with it stays in the graph",
    )


def require_plain(job: Job, case: dict[str, Any], answer: dict[str, Any]) -> None:
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
        got=f"a weight {_times(answer['merged'], right):.3g} times as far from W"
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


def _times(got: np.ndarray, right: np.ndarray) -> float:
    """How many times as large; `right` may be 0."""
    return float(np.linalg.norm(got)) / max(TINY, float(np.linalg.norm(right)))


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
