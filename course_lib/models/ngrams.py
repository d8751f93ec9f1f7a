"""Bags of hashed n-grams as a classifier, alone and joined to the transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.models.transformers import Dropout, ModelConfig, TextClassifier

DROPOUT = 0.5
"""The share of n-grams that a text lacks in a step: what one says of a class, others must be able to say, too."""


class NgramBag(nn.Module):
    """A linear model of a text's n-grams: the weighted sum of their rows, a number per output in each, and a bias.

    A weight is the inverse document frequency; those of words and those of characters are scaled to a length of 1
    each, so that neither outvotes the other. Joulin et al., 2017; Bojanowski et al., 2017; Salton and Buckley, 1988,
    for the weights.
    """

    inverse_frequency: Tensor
    num_words: Tensor
    has_constant_buffers = True
    learns_by_sgd = True
    """Told to `make_optimizer`. Adam gives the many rare n-grams as large a say as the frequent ones."""

    def __init__(self, num_ngrams: int, num_outputs: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_ngrams, num_outputs)
        self.bias = nn.Parameter(torch.zeros(num_outputs))
        self.dropout = Dropout(DROPOUT)
        nn.init.zeros_(self.table.weight)
        self.register_buffer("inverse_frequency", torch.ones(num_ngrams))
        self.register_buffer("num_words", torch.zeros((), dtype=torch.int64))

    def forward(self, ids: Tensor, is_ngram: Tensor) -> Tensor:
        """Ids of n-grams int64 [B, T], bool [B, T] -> [B, num_outputs]. Id 0 weighs nothing."""
        ids = ids * is_ngram
        weights = self.inverse_frequency[ids] * (ids > 0)
        is_word = ids <= self.num_words
        parts = [_of_length_one(weights * is_word), _of_length_one(weights * ~is_word)]
        weights = self.dropout(parts[0] + parts[1])
        return F.embedding_bag(ids, self.table.weight, per_sample_weights=weights, mode="sum") + self.bias


class NgramClassifier(nn.Module):
    """The bag alone: classes, or several labels at once."""

    def __init__(self, task: str, num_ngrams: int, num_classes: int) -> None:
        super().__init__()
        self.task = task
        self.ngrams = NgramBag(num_ngrams, num_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`input_ids` int64 [B, T] of n-grams, `attention_mask` [B, T] (True or 1 = no padding) -> logits [B, C]."""
        logits: Tensor = self.ngrams(input_ids, attention_mask.bool())
        return logits


class JoinedClassifier(TextClassifier):
    """The transformer and the bag of n-grams, their logits added: deep and wide (Cheng et al., 2016).

    Ids below `vocab_size` are tokens, and stand first in a row; those from there on are n-grams.
    """

    def __init__(self, config: ModelConfig, num_ngrams: int) -> None:
        super().__init__(config)
        self.vocab_size = config.vocab_size
        self.ngrams = NgramBag(num_ngrams, config.num_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As `TextClassifier.forward`, with tokens and n-grams in one row."""
        is_real = attention_mask.bool()
        is_ngram = is_real & (input_ids >= self.vocab_size)
        is_token = is_real & ~is_ngram
        width = max(1, int(is_token.sum(dim=1).max()))  # a sync, on a GPU
        tokens = torch.where(is_token, input_ids, 0)[:, :width]
        wide: Tensor = self.ngrams((input_ids - self.vocab_size).clamp(min=0), is_ngram)
        return super().forward(tokens, is_token[:, :width]) + wide


def set_ngram_weights(model: nn.Module, counts: Tensor, num_texts: int, num_words: int) -> None:
    """Tell the bag of a model how many of `num_texts` texts hold each n-gram, int64 [num_ngrams]; the ids up to
    `num_words` are words. The smoothed inverse frequency: ln((1 + n) / (1 + count)) + 1. Models without a bag stay."""
    for module in model.modules():
        if isinstance(module, NgramBag):
            device = module.inverse_frequency.device
            module.inverse_frequency.copy_(torch.log((1 + num_texts) / (1 + counts.to(device).float())) + 1)
            module.num_words.fill_(num_words)


def _of_length_one(weights: Tensor) -> Tensor:
    return weights / weights.norm(dim=1, keepdim=True).clamp(min=1e-6)
