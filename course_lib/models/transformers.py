"""Compact transformers for texts, small enough to train on two CPU cores: one body, a head for each task."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Sizes of a model. Raises ValueError when they do not fit together."""

    vocab_size: int
    num_classes: int
    """Labels to choose from; language models choose among `vocab_size` tokens instead."""
    max_length: int
    """Most tokens of one text: as many positions are learned."""
    task: str = "classification"
    d_model: int = 64
    num_layers: int = 2
    num_heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("vocab_size", "num_classes", "max_length", "d_model", "num_layers", "num_heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model must be a multiple of num_heads, got d_model={self.d_model} and "
                f"num_heads={self.num_heads}: each head takes an equal share"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")


class Dropout(nn.Module):
    """`nn.Dropout`, about 6 times as fast on CPUs, where torch draws one number per element, one after the other.

    Here one 64-bit number serves eight elements, so the share dropped is `p` rounded to a 256th. What stays is
    scaled by exactly 1 / (1 - share).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.threshold = min(255, round(256 * p))

    def forward(self, hidden: Tensor) -> Tensor:
        if hidden.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(hidden, self.p, self.training)
        if not self.training or self.threshold == 0:
            return hidden
        count = hidden.numel()
        words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        # Compared straight into the type of the product: turning a bool tensor into floats would cost 3 times more.
        scale = torch.empty(hidden.shape, dtype=hidden.dtype)
        torch.ge(words.view(torch.uint8)[:count].view(hidden.shape), self.threshold, out=scale)
        return hidden * scale.mul_(256 / (256 - self.threshold))


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward layer, each behind a LayerNorm (pre-norm: Xiong et al., 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.query_key_value = nn.Linear(config.d_model, 3 * config.d_model)
        self.attention_out = nn.Linear(config.d_model, config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.feed_forward_in = nn.Linear(config.d_model, 4 * config.d_model)
        self.feed_forward_out = nn.Linear(4 * config.d_model, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, key_mask: Tensor | None) -> Tensor:
        """`hidden` [B, T, D] -> [B, T, D]. `key_mask` bool [B, 1, 1, T], True = may be attended to; without
        one each position attends to itself and those before it."""
        hidden = hidden + self.dropout(self._attend(self.attention_norm(hidden), key_mask))
        expanded = F.gelu(self.feed_forward_in(self.feed_forward_norm(hidden)))
        return hidden + self.dropout(self.feed_forward_out(expanded))

    def _attend(self, hidden: Tensor, key_mask: Tensor | None) -> Tensor:
        rows, width, dim = hidden.shape
        qkv = self.query_key_value(hidden)
        # No dropout on attention weights: with it, CPUs lose the fused kernel and the T × T matrix is stored.
        if is_slow := qkv.device.type == "cpu" and qkv.dtype.itemsize < 4:
            # torch's CPU kernel takes 2 to 9 times as long in bf16, most of all its backward.
            qkv = qkv.float()
        qkv = qkv.view(rows, width, 3, self.num_heads, dim // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        with _without_autocast("cpu") if is_slow else nullcontext():
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=key_mask, is_causal=key_mask is None
            )
        return self.attention_out(mixed.transpose(1, 2).reshape(rows, width, dim))


class Encoder(nn.Module):
    """Embeddings, pre-norm blocks, final norm. What the models below share."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config, self.task = config, config.task
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.max_length, config.d_model)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=0.02)

    def encode(self, input_ids: Tensor, is_real: Tensor | None) -> Tensor:
        """`input_ids` int64 [B, T], `is_real` bool [B, T] -> [B, T, D]; causal when `is_real` is None.

        Raises ValueError when T is above `config.max_length`.
        """
        width = input_ids.shape[1]
        if width > self.config.max_length:
            raise ValueError(
                f"a batch is {width} tokens wide but the model has {self.config.max_length} positions: "
                f"truncate the texts or raise max_length"
            )
        hidden = self.token_embedding(input_ids) + self.position_embedding.weight[:width]
        hidden = self.dropout(hidden)
        key_mask = None if is_real is None else is_real[:, None, None, :]
        for block in self.blocks:
            hidden = block(hidden, key_mask)
        return self.final_norm(hidden)


class TargetScale(nn.Module):
    """The last layer where a number is learnt: the network works in standard deviations around the mean of the targets
    to train on, and answers in their unit. Both are buffers, saved with the weights."""

    mean: Tensor
    std: Tensor
    has_constant_buffers = True

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def forward(self, logits: Tensor) -> Tensor:
        """[..., 1] -> fp32 [...]."""
        return logits.squeeze(-1).float() * self.std + self.mean


def set_target_scale(model: nn.Module, mean: float, std: float) -> None:
    """Tell a model that learns a number in which unit; others have no such layer."""
    for module in model.modules():
        if isinstance(module, TargetScale):
            module.mean.fill_(mean)
            module.std.fill_(std)


def make_head(task: str, width: int, num_classes: int) -> nn.Module:
    """The last layer: [..., width] -> logits [..., num_classes]; regression: numbers [...]."""
    if task == "regression":
        return nn.Sequential(nn.Linear(width, 1), TargetScale())
    return nn.Linear(width, num_classes)


class TextClassifier(Encoder):
    """Mean over the real tokens, linear head: classes, several labels at once, or a number.

    Padding is masked in attention and in the mean, so the logits of a text do not depend on the width it
    was padded to (up to rounding).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.head: Any = make_head(config.task, config.d_model, config.num_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`input_ids` int64 [B, T], `attention_mask` [B, T] (True or 1 = real token) -> logits [B, C]; regression:
        numbers [B] in the unit of the targets."""
        is_real = attention_mask.bool()
        return self.head(masked_mean(self.encode(input_ids, is_real), is_real))


class TokenClassifier(Encoder):
    """A label for every token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.d_model, config.num_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As `TextClassifier.forward`, but -> logits [B, T, C]."""
        return self.head(self.encode(input_ids, attention_mask.bool()))


class LanguageModel(Encoder):
    """The next token at every position. The head is the token embedding (Press and Wolf, 2017).

    Rows are padded on the right, where no real position looks: attention needs no mask but the causal one.
    """

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`input_ids` int64 [B, T] -> logits [B, T, vocab_size]; `attention_mask` is not needed."""
        return F.linear(self.encode(input_ids, None), self.token_embedding.weight)


_MODELS = {
    "classification": TextClassifier,
    "multi-label": TextClassifier,
    "regression": TextClassifier,
    "token-classification": TokenClassifier,
    "language-modelling": LanguageModel,
}


def make_model(config: ModelConfig) -> Encoder:
    """The model for `config.task`, randomly initialised."""
    return _MODELS[config.task](config)


def masked_mean(hidden: Tensor, is_real: Tensor) -> Tensor:
    """Mean of `hidden` [B, T, D] over positions where `is_real` [B, T] -> [B, D]; 0 for a row without any."""
    weights = is_real.to(hidden.dtype)
    with _without_autocast(hidden.device.type):  # casting all of it would cost more than so small a product
        total = torch.einsum("btd,bt->bd", hidden, weights)
    return total / weights.sum(dim=1, keepdim=True).clamp(min=1.0)


def _without_autocast(kind: str) -> AbstractContextManager[Any]:
    """On a kind of device: inside, products are made in the type that their factors have."""
    is_on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if is_on else nullcontext()
