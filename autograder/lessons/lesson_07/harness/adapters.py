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
    plain = _logits(model, batch)
    model = learner(model, rank, alpha)
    learning = _learning(model)
    answer: dict[str, Any] = {
        "before": plain,
        "after": _logits(model, batch),
        "num_before": num_before,
        "num_trainable": sum(p.numel() for p in learning),
        "num_linears": len(linears),
        "trainable_of_base": [n for n in names if not n.startswith("head.") and base[n].requires_grad],
        "is_head_trained": bool(model.head.weight.requires_grad),
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
    answer |= {"trained": trained, "num_merged": len(merged)}
    for name, module in merged:
        layer = module.merged()
        if type(layer) is not torch.nn.Linear:
            raise TypeError(f"merged() must give a plain nn.Linear, not a {type(layer).__name__}")
        model.set_submodule(name, layer)
    num_after = sum(p.numel() for p in model.parameters())
    return answer | {"merged": _logits(model, batch), "num_after": num_after}


class _OneLayer(torch.nn.Module):
    def __init__(self, seed: int, wide: int, narrow: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.body = torch.nn.Linear(wide, narrow)
        self.head = torch.nn.Linear(narrow, 2)


def one_layer(seed: int, rank: int, alpha: float, wide: int, narrow: int) -> dict[str, Any]:
    """What the adapter of a single layer adds to its output, and the matrices that it is made of."""
    model = _OneLayer(seed, wide, narrow)
    weight, bias = model.body.weight.detach().clone(), model.body.bias.detach().clone()
    model = learner(model, rank, alpha)
    own = [p for name, p in model.named_parameters() if p.requires_grad and not name.startswith("head.")]
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in own:
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        added = model.body(torch.eye(wide)) - F.linear(torch.eye(wide), weight, bias)
    return {"added": added.T, "matrices": own}


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
            model = learner(model, rank, 2.0 * rank)
        _trained(model, texts, seed, num_steps=80, learning_rate=rate)
        model.eval()
        answers[name] = _logits(
            model, {"input_ids": ids, "attention_mask": torch.ones_like(ids, dtype=torch.bool)}
        )
    return answers
