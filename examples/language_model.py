"""A causal language model over bytes: two micro-batches an update, in bfloat16, with warm-up and cosine."""

import argparse
import inspect

import torch
from torch import nn
from torch.utils.data import DataLoader

from course_lib import evaluate, fit, resolve_precision, warmup_cosine

LENGTH = 64


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, 32), nn.Embedding(LENGTH, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 256)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.blocks(hidden, mask=mask, is_causal=True))


torch.manual_seed(0)
text = torch.tensor(list(inspect.getsource(argparse).encode()[:40_001]))
rows = [(text[i : i + LENGTH], text[i + 1 : i + LENGTH + 1]) for i in range(0, 40_000 - LENGTH, LENGTH)]
train_loader, test_loader = DataLoader(rows[:512], 16, shuffle=True), DataLoader(rows[512:], 32)

model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = warmup_cosine(optimizer, warmup_steps=4, max_steps=32)
precision = resolve_precision("bf16-mixed", torch.device("cpu"))

fit(
    model, train_loader, optimizer, scheduler=scheduler, precision=precision, grad_accum_steps=2, max_epochs=2
)
print(f"loss of a byte {evaluate(model, test_loader, precision=precision)['loss']:.3f}")
