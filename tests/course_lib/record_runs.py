"""Small runs, trained for real, for the tests of what is made from run folders."""

import random
from pathlib import Path

from course_lib.runs.config import TrainConfig
from course_lib.runs.train import run_training

TOPICS = {
    "cooking": "onion garlic oven bake flour butter",
    "sport <b>": "team goal match coach player season",
    "travel & more": "flight hotel train beach museum",
}


def write_csv(path: Path, num_rows: int = 150, seed: int = 0) -> Path:
    rng = random.Random(seed)
    rows = ["text,label"]
    for _ in range(num_rows):
        label = rng.choice(list(TOPICS))
        words = rng.choices(TOPICS[label].split(), k=rng.randint(1, 5)) + ["the"] * rng.randint(1, 20)
        rows.append(f"{' '.join(words)},{label}")
    path.write_text("\n".join(rows) + "\n")
    return path


def train(out: Path, data: Path, **changes):
    small = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "max_epochs": 3,
             "precision": "32-true", "learning_rate": 1e-2, "micro_batch_size": 16,
             "log_every_steps": 2, "price_per_hour": 3.0, "target": 0.1, "monitor": "accuracy"}  # fmt: skip
    return run_training(TrainConfig(data=str(data), **(small | changes)), out, progress=False)
