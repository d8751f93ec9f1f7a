"""What the measured quiz questions of lesson 04 ask for: counts on this machine, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable


def _checkpoint_over_weights(*, embeddings_learn: bool) -> float:
    """How many times the bytes of the weights a checkpoint takes; the embeddings learn alone or all others do."""
    import io

    import torch

    from course_lib.models import ModelConfig, TextClassifier

    config = ModelConfig(vocab_size=8192, num_classes=20, max_length=256)
    model = TextClassifier(config)
    learning = [p for name, p in model.named_parameters() if ("embedding" in name) is embeddings_learn]
    optimizer = torch.optim.AdamW(learning)
    ids = torch.arange(3, 35).reshape(2, 16)
    model(ids, torch.ones_like(ids, dtype=torch.bool)).sum().backward()
    optimizer.step()

    def size(content: object) -> int:
        file = io.BytesIO()
        torch.save(content, file)
        return len(file.getvalue())

    whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    return size(whole) / size(model.state_dict())


@functools.cache
def checkpoint_over_weights() -> float:
    """How many times the bytes of the weights a checkpoint takes when AdamW has all but the embeddings."""
    return _checkpoint_over_weights(embeddings_learn=False)


@functools.cache
def checkpoint_over_weights_of_embeddings() -> float:
    """The same when AdamW has the embeddings alone."""
    return _checkpoint_over_weights(embeddings_learn=True)


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "checkpoint_over_weights": checkpoint_over_weights,
    "checkpoint_over_weights_of_embeddings": checkpoint_over_weights_of_embeddings,
}
