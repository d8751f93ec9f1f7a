"""A causal language model over bytes, in Accelerate: its length is compared, and that it runs."""

import argparse
import inspect

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader
from transformers import get_cosine_schedule_with_warmup

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


scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=4, num_training_steps=32)
accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=2)
model, optimizer, scheduler, train_loader, test_loader = accelerator.prepare(
    model, optimizer, scheduler, train_loader, test_loader
)


def loss_of(x, y):
    with accelerator.autocast():
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


for _ in range(2):
    model.train()
    for x, y in train_loader:
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(x, y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
model.eval()
with torch.no_grad():
    total = sum(loss_of(x, y).item() * y.numel() for x, y in test_loader)
print(f"loss of a byte {total / (len(rows[512:]) * LENGTH):.3f}")
