"""Harness of 7.5: what the learner's adapters do to a model, and what the model learns through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, plain_step
from course_lib.data import collate
from course_lib.models import ModelConfig, TextClassifier

ADAPTED_WORDS = 600
Arrays = dict[str, np.ndarray]


def _pretrained(seed: int, num_classes: int, num_layers: int = 2) -> TextClassifier:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"d_model": 32, "num_layers": num_layers, "num_heads": 4, "max_length": 16}
    return TextClassifier(
        ModelConfig(vocab_size=ADAPTED_WORDS, num_classes=num_classes, dropout=0.0, **sizes)
    )


def _texts_of_five(seed: int) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return collate(
        [(rng.integers(3, ADAPTED_WORDS, size=rng.integers(4, 17)), int(rng.integers(5))) for _ in range(8)]
    )


def _logits(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return model(batch["input_ids"], batch["attention_mask"])


def _learning(model: Any) -> list[torch.nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def adapted(seed: int, rank: int, alpha: float) -> dict[str, Any]:
    """A model before and after the adapters, after a few steps through them, and merged."""
    model, batch = _pretrained(seed, 5), _texts_of_five(seed + 1)
    names = [name for name, _ in model.named_parameters()]
    base = dict(model.named_parameters())
    copies = {name: parameter.detach().clone() for name, parameter in base.items()}
    num_before = sum(p.numel() for p in model.parameters())
    linears = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and n != "head"]
    in_and_out = sum(sum(base[f"{name}.weight"].shape) for name in linears)
    plain = _logits(model, batch)
    returned = learner(model, rank, alpha)
    if returned is not model:
        return {"returned": _what(returned)}
    learning = _learning(model)
    answer: dict[str, Any] = {
        "returned": "",
        "before": plain,
        "after": _logits(model, batch),
        "num_before": num_before,
        "num_trainable": sum(p.numel() for p in learning),
        "num_linears": len(linears),
        "num_asked_for": sum(p.numel() for p in model.head.parameters()) + rank * in_and_out,
        "trainable_of_base": [n for n in names if not n.startswith("head.") and base[n].requires_grad],
        "is_head_trained": all(p.requires_grad for p in model.head.parameters()),
    }
    optimizer = torch.optim.SGD(learning, lr=0.5)
    at_start = [parameter.detach().clone() for parameter in learning]
    for number in range(4):
        plain_step(model, optimizer, _texts_of_five(seed + 2 + number))
    still = sum(int(torch.equal(a, b)) for a, b in zip(at_start, learning, strict=True))
    changed = [n for n in names if not n.startswith("head.") and not torch.equal(copies[n], base[n])]
    trained = _logits(model, batch)
    merged = [(name, module) for name, module in model.named_modules() if hasattr(module, "merged")]
    answer |= {"num_still": still, "num_learning": len(learning), "changed_of_base": changed}
    answer |= {"trained": trained, "num_merged": len(merged), "not_plain": ""}
    for name, module in merged:
        layer = module.merged()
        if type(layer) is not torch.nn.Linear:
            return answer | {"not_plain": _what(layer)}
        model.set_submodule(name, layer)
    num_after = sum(p.numel() for p in model.parameters())
    return answer | {"merged": _logits(model, batch), "num_after": num_after}


def _what(found: Any) -> str:
    return "None" if found is None else f"another {type(found).__name__}"


def layers(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a layer in each of several models, all adapted before any is looked at: what its adapter adds to its output,
    the matrices that it is made of, and what merging makes of it."""
    prepared = []
    for case in cases:
        torch.manual_seed(case["seed"])
        sizes: dict[str, Any] = {"d_model": case["d_model"], "num_layers": 2, "num_heads": 2}
        model: Any = TextClassifier(
            ModelConfig(vocab_size=30, num_classes=3, max_length=8, dropout=0.1, **sizes)
        )
        # Layers that are called like the head, or have it in their name; the model's own forward knows nothing of them.
        model.add_module("head_mix", torch.nn.Linear(case["d_model"], 5))
        for block in model.blocks:
            block.add_module("head", torch.nn.Linear(case["d_model"], 7, bias=False))
        base = model.get_submodule(case["name"])
        (base if case["is_alone"] else model).to(getattr(torch, case["dtype"]))
        weight = base.weight.detach().clone()
        bias = None if base.bias is None else base.bias.detach().clone()
        model.requires_grad_(not case["is_frozen"]).train(not case["is_frozen"])
        model.blocks[0].train(case["is_frozen"])
        modes = {module: module.training for module in model.modules()}
        returned = learner(model, case["rank"], case["alpha"])
        is_mode_kept = all(m.training == modes[m] for m in model.modules() if m in modes)
        is_learning = any(parameter.requires_grad for parameter in base.parameters(recurse=False))
        one = (model, weight, bias, is_learning, "" if returned is model else _what(returned))
        prepared.append((is_mode_kept, one))
    return [
        _layer(case, *one) | {"is_mode_kept": is_mode_kept}
        for case, (is_mode_kept, one) in zip(cases, prepared, strict=True)
    ]


def devices(rank: int, alpha: float) -> list[str]:
    """The parameters that are not where their layer was: the last block was on the device "meta", which every machine
    has, and which holds no values."""
    model: Any = _pretrained(0, 5)
    model.blocks[1].to("meta")
    learner(model, rank, alpha)
    return [
        name
        for name, parameter in model.named_parameters()
        if parameter.device.type != ("meta" if name.startswith("blocks.1.") else "cpu")
    ]


def _layer(
    case: dict[str, Any], model: Any, weight: Any, bias: Any | None, is_base_learning: bool, returned: str
) -> dict[str, Any]:
    if returned:
        return {"returned": returned}
    module = model.get_submodule(case["name"])
    own = [parameter for parameter in module.parameters() if parameter.requires_grad]
    generator = torch.Generator().manual_seed(case["seed"] + 1)
    answer: dict[str, Any] = {
        "returned": "",
        "is_base_learning": is_base_learning,
        "is_head_trained": all(p.requires_grad for p in model.head.parameters()),
    }
    random = [p.detach().double() for p in own if p.ndim == 2 and p.any()]
    answer["lacking"] = [min(p.shape) - int(torch.linalg.matrix_rank(p)) for p in random]
    inputs = torch.eye(weight.shape[1], dtype=weight.dtype)
    with torch.no_grad():
        answer["start"] = module(inputs) - F.linear(inputs, weight, bias)
        for parameter in own:
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        answer["matrices"] = [parameter.clone() for parameter in own]
        answer["dtypes"] = [str(parameter.dtype).removeprefix("torch.") for parameter in own]
        # Each input alone, without any other dimension.
        added = torch.stack([module(one) for one in inputs]) - F.linear(inputs, weight, bias)
        # And several, with more dimensions, that do not lie one behind the other in memory.
        several = torch.stack((inputs, 2.0 * inputs)).transpose(0, 1)[None]
        spread = module(several)[0, :, 0] - F.linear(inputs, weight, bias)
    answer |= {"added": added.T, "spread": spread.T, "not_plain": "no method of this name"}
    answer |= {"is_input_kept": torch.equal(inputs, torch.eye(len(inputs), dtype=inputs.dtype))}
    answer |= _gradients(module, own, weight, generator)
    if hasattr(module, "merged"):
        plain = module.merged()
        answer["not_plain"] = "" if type(plain) is torch.nn.Linear else _what(plain)
        if not answer["not_plain"]:
            answer["merged"] = plain.weight.detach() - weight
            answer["merged_dtype"] = str(plain.weight.dtype).removeprefix("torch.")
            answer["is_bias_kept"] = _is_bias_kept(plain.bias, bias)
    return answer


def _gradients(module: Any, own: list[Any], weight: Any, generator: Any) -> dict[str, Any]:
    """Of the inputs and of the adapter's own matrices, and what they come from."""
    rows = torch.randn(3, weight.shape[1], generator=generator).to(weight.dtype).requires_grad_()
    kept = {name: value.clone() for name, value in module.state_dict().items()}
    output = module(rows)
    coming = torch.randn(output.shape, generator=generator).to(weight.dtype)
    got = torch.autograd.grad(output, [rows, *own], coming, allow_unused=True, materialize_grads=True)
    for name, value in module.state_dict().items():  # whoever writes into it while it learns is found later
        value.copy_(kept[name])
    names = ("weight", "rows", "coming", "gradient", "gradients")
    return dict(zip(names, (weight, rows.detach(), coming, got[0], list(got[1:])), strict=True))


def _is_bias_kept(got: Any, right: Any) -> bool:
    if right is None or got is None:
        return right is None and (got is None or not got.any())
    return torch.equal(got.detach(), right)


def _trained(model: Any, texts: Arrays, seed: int, num_steps: int, learning_rate: float) -> None:
    optimizer = torch.optim.AdamW(_learning(model), lr=learning_rate, weight_decay=0.0)
    rng = np.random.default_rng(seed)
    ids, labels = torch.from_numpy(texts["ids"].copy()), torch.from_numpy(texts["labels"].copy())
    mask = torch.ones_like(ids, dtype=torch.bool)
    model.train()
    for _ in range(num_steps):
        rows = torch.from_numpy(rng.integers(len(ids), size=32))
        plain_step(
            model, optimizer, {"input_ids": ids[rows], "attention_mask": mask[rows], "labels": labels[rows]}
        )


def fine_tuned(
    seed: int, rank: int, base_texts: Arrays, texts: Arrays, held_out: np.ndarray
) -> dict[str, torch.Tensor]:
    """Logits on held-out texts: of a model trained whole, and of one trained through the learner's adapters.

    Both start from one model, pretrained on another task over the same words.
    """
    base = _pretrained(seed, num_classes=int(base_texts["labels"].max()) + 1)
    _trained(base, base_texts, seed, num_steps=80, learning_rate=1e-2)
    state = {name: tensor for name, tensor in base.state_dict().items() if not name.startswith("head.")}
    num_classes = int(texts["labels"].max()) + 1
    ids = torch.from_numpy(held_out.copy())
    answers = {}
    for name, rate in (("whole", 3e-3), ("adapters", 6e-3)):
        model: Any = _pretrained(seed + 7, num_classes)
        model.load_state_dict(state, strict=False)
        if name == "adapters":
            learner(model, rank, 2.0 * rank)
        _trained(model, texts, seed, num_steps=80, learning_rate=rate)
        model.eval()
        answers[name] = _logits(
            model, {"input_ids": ids, "attention_mask": torch.ones_like(ids, dtype=torch.bool)}
        )
    return answers
