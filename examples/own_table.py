# %% [markdown]
# A table of one's own, as in a notebook: numbers and names as input, early stopping, predictions.

# %%
import csv
import io
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from course_lib import EarlyStopping, fit

# %% The table. Yours is a file: open("flats.csv", newline="").
draw = random.Random(0)
lines = ["rooms,area,town,sold"]
for _ in range(600):
    rooms, area, town = draw.randint(1, 6), draw.uniform(20, 200), draw.choice(["Bern", "Lyon", "Oslo"])
    is_sold = area / rooms + 20 * (town == "Oslo") + draw.gauss(0, 8) > 35
    lines.append(f"{rooms},{area:.1f},{town},{'yes' if is_sold else 'no'}")
table = list(csv.DictReader(io.StringIO("\n".join(lines))))

# %% Columns become tensors: numbers with mean 0 and deviation 1, names as their index.
numbers = torch.tensor([[float(row["rooms"]), float(row["area"])] for row in table])
numbers = (numbers - numbers.mean(dim=0)) / numbers.std(dim=0)
towns = sorted({row["town"] for row in table})
town = torch.tensor([towns.index(row["town"]) for row in table])
sold = torch.tensor([float(row["sold"] == "yes") for row in table])
rows = [{"numbers": numbers[i], "town": town[i], "sold": sold[i]} for i in range(len(table))]


# %%
class Flats(nn.Module):
    def __init__(self):
        super().__init__()
        self.town = nn.Embedding(len(towns), 4)
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, batch):
        return self.layers(torch.cat([batch["numbers"], self.town(batch["town"])], dim=1))[:, 0]


def loss(model, batch):
    costs = F.binary_cross_entropy_with_logits(model(batch), batch["sold"], reduction="sum")
    return costs, len(batch["sold"])


# %%
torch.manual_seed(0)
model = Flats()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train_loader, test_loader = DataLoader(rows[:450], 32, shuffle=True), DataLoader(rows[450:], 150)
records = fit(
    model, train_loader, optimizer,
    loss=loss, validation_batches=test_loader, max_epochs=50, callbacks=[EarlyStopping(patience=2)],
)  # fmt: skip

# %%
losses = [record["loss"] for record in records if record["kind"] == "validation"]
with torch.no_grad():
    is_right = (model(next(iter(test_loader))) > 0) == (sold[450:] > 0)
print(f"{len(losses)} epochs, best loss {min(losses):.3f}, right {is_right.float().mean():.2f}")
