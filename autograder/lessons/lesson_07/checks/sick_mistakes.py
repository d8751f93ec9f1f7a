"""Mistakes in exercise 7.4, as edits of the sick runs that come to the same numbers."""

from __future__ import annotations

_MODE = "the other mode of the model: A to C train, D evaluates, whatever the model was in before"
_LEFT = "gradients from before the call: each step zeroes its own behind it, and the first begins with what was there"
_ZEROED_LATE = (
    ("optimizer.zero_grad(set_to_none=True)", "pass"),
    ("optimizer.step()", "optimizer.step(); optimizer.zero_grad(set_to_none=True)"),
)
_GRADIENTS = "gradients add up from step to step: `zero_grad` before each backward"
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
_CHUNKS = (
    "parts of an update weigh the same, whatever their size: its mean is over rows, not over micro-batches"
)
Edits = tuple[tuple[str, str], ...]
#: By run: mistake -> why, and how the sick run is brought to make it.
MISTAKES: dict[str, dict[str, tuple[str, Edits]]] = {
    "A": {"mode": (_MODE, (("model.train()", "model.eval()"),))},
    "B": {"mode": (_MODE, (("model.train()", "model.eval()"),))},
    "C": {
        "mode": (_MODE, (("model.train()", "model.eval()"),)),
        "clip": (
            "gradients that are not clipped: at 1.0, as the sick run does",
            (("            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "            #"),),
        ),
        "clip by value": (
            "each element is clipped by itself, not the norm of the whole gradient, as the sick run does",
            (("torch.nn.utils.clip_grad_norm_(", "torch.nn.utils.clip_grad_value_("),),
        ),
        "always": (
            "gradients are brought to a norm of 1 that were shorter: clipping leaves those as they are",
            (
                (
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                    "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); "
                    "[p.grad.mul_((1 / norm).clamp(min=1)) for p in model.parameters() if p.grad is not None]",
                ),
            ),
        ),
        "sum": ("the sum of the rows' losses where their mean is asked for", ((" / len(rows)", ""),)),
        "share": (
            "the last update has fewer rows: the mean is over those that it has",
            ((" / len(rows)", " / rows_per_update"),),
        ),
        **{
            f"chunks of {size}": (
                _CHUNKS,
                (
                    ("for row in rows:", "for place, row in enumerate(rows):"),
                    (
                        " / len(rows)",
                        f" / min({size}, len(rows) - place // {size} * {size}) / -(-len(rows) // {size})",
                    ),
                ),
            )
            for size in (8, 4, 16)
        },
        "gradients": (_GRADIENTS, (("optimizer.zero_grad(set_to_none=True)", "pass"),)),
        "gradients from before": (_LEFT, _ZEROED_LATE),
    },
    "D": {
        "mode": (_MODE, (("model.eval()", "model.train()"),)),
        "mode of the head": (_MODE, (("model.eval()", "model.eval(); model.head.train()"),)),
        "clip": (
            "gradients are clipped at 1.0: B and C do it, as `train_step` does, and the sick run D does not",
            (("            optimizer.step()", f"            {_CLIP}; optimizer.step()"),),
        ),
        "gradients": (_GRADIENTS, (("optimizer.zero_grad(set_to_none=True)", "pass"),)),
        "gradients from before": (_LEFT, _ZEROED_LATE),
    },
}
