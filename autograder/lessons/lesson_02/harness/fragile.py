"""The classifier that exercise 2.5 repairs: the lesson shows its `forward`, and in fp32 it is the baseline.

It stands among the harness so that a solution may inherit from it.
"""

import torch
import torch.nn.functional as F


class FragileClassifier(torch.nn.Module):
    """A bag of words with a loud hidden layer. Right in fp32 and in bf16; one operation of `forward` breaks in fp16.

    The hidden layer's values reach the hundreds and thousands, as those of large trained models do. The
    normalisation after it makes them of size 1 again, so that in fp32 they are nothing to worry about.
    """

    def __init__(self, vocab_size: int, num_classes: int, d_model: int = 32) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocab_size, d_model)
        self.hidden = torch.nn.Linear(d_model, 2 * d_model)
        self.gain = torch.nn.Parameter(torch.ones(2 * d_model))
        self.head = torch.nn.Linear(2 * d_model, num_classes)
        torch.nn.init.normal_(self.hidden.weight, std=200.0)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """`input_ids` int64 [B, T], `attention_mask` bool [B, T] -> logits [B, C]."""
        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
        features = F.gelu(self.hidden(self.words(input_ids)))
        pooled = torch.einsum("bth,bt->bh", features, weights)
        mean_square = (pooled * pooled).mean(dim=-1, keepdim=True)
        normal = pooled / torch.sqrt(mean_square + 1e-6)
        return self.head(normal * self.gain)
