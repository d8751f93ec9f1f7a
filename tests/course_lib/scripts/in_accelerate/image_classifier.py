"""An image classifier, in Accelerate: its length is compared, and that it runs."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (600,))
images = 0.8 * torch.randn(600, 1, 8, 8)
images[torch.arange(600), 0, 2 * labels] += 1.0  # the class is the row that is bright
data = TensorDataset(images, labels)
train, test = torch.utils.data.random_split(data, [500, 100])
train_loader, test_loader = DataLoader(train, 32, shuffle=True), DataLoader(test, 50)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(128, 4),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
accelerator = Accelerator(cpu=True)
model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)

for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        accelerator.backward(F.cross_entropy(model(x), y))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = 0
        for x, y in test_loader:
            predictions, labels = accelerator.gather_for_metrics((model(x).argmax(dim=1), y))
            correct += (predictions == labels).sum()
    print(f"epoch {epoch + 1}: accuracy {correct / len(test):.2f}")
