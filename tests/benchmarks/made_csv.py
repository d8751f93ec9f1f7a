"""A made table of texts with a label that their words tell."""

from __future__ import annotations

import random
from pathlib import Path


def make_csv(path: Path, *, num_rows: int = 400, seed: int = 0) -> None:
    rng = random.Random(seed)
    topics = {"sea": ["wave", "boat", "tide", "sail"], "road": ["wheel", "brake", "engine", "fuel"]}
    common = ["the", "a", "of", "it", "was", "very", "with", "this", "some"]
    lines = ["text,label"]
    for _ in range(num_rows):
        topic = rng.choice(sorted(topics))
        words = [
            rng.choice(topics[topic] if rng.random() < 0.3 else common) for _ in range(rng.randint(3, 30))
        ]
        lines.append(f"{' '.join(words)},{topic}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
