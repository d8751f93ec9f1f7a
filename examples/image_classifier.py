"""An image classifier: torch's own DataLoader, a plain module, no adapter. The default loss is cross-entropy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_lib import fit

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

records = fit(model, train_loader, optimizer, validation_batches=test_loader, max_epochs=3)
for record in records:
    if record["kind"] == "validation":
        print(f"epoch {record['epoch'] + 1}: accuracy {record['accuracy']:.2f}")
