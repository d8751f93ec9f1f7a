"""The plain-torch twin of image_classifier.py: it ends with the same weights."""

import torch
import torch.nn.functional as F
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

for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # `fit` clips at 1.0 unless it is told otherwise
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = sum((model(x).argmax(dim=1) == y).sum() for x, y in test_loader)
    print(f"epoch {epoch + 1}: accuracy {correct / len(test):.2f}")
