"""Run by torchrun, and by the test in its own process: each task and kind of model as a run builds and trains it.

Tables are in the folder argv[1], and so are what came out, by rank.
"""

import json
import random
import sys
from pathlib import Path

import torch

from course_lib.distributed import ranks as distributed
from course_lib.models.transformers import Dropout
from course_lib.runs.components import build_components
from course_lib.runs.config import TrainConfig
from course_lib.runs.data import load_data
from course_lib.runs.folder import RunFolder
from course_lib.training import evaluate, fit, seed_everything

TINY = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "dropout": 0.0}
SMALL = {**TINY, "optimizer": "adamw"}
CASES = {
    "n-grams": {"task": "classification", "model": "ngrams"},
    "n-grams of several labels": {"task": "multi-label", "model": "ngrams"},
    "joined": {"task": "classification", "model": "joined", "vocab_size": 300, "d_model": 16, "dropout": 0.0},
    **{task: {"task": task, **SMALL} for task in ("multi-label", "regression", "token-classification")},
    "adapters": {"task": "classification", "lora_rank": 4, **SMALL},
    "adapters on 8 bits": {"task": "classification", "lora_rank": 4, "use_low_bit_base": True, **SMALL},
}
"""Those that are built of blocks are split, too."""
TABLES = {
    "classification": "class.csv",
    "multi-label": "several.csv",
    "regression": "number.csv",
    "token-classification": "tokens.jsonl",
}
MAX_STEPS, GLOBAL_BATCH_SIZE = 4, 16


def make_tables(folder):
    rng = random.Random(0)
    food, sport = ["onion", "garlic", "oven", "bake"], ["team", "goal", "match", "coach"]
    rows = {task: [] for task in TABLES}
    for number in range(70):
        words = [*rng.choices([*food, *sport, "the", "a", "of"], k=rng.randint(3, 14)), f"n{number}"]
        num_food, num_sport = (sum(word in kind for word in words) for kind in (food, sport))
        labels = [name for name, n in (("food", num_food), ("sport", num_sport)) if n] + ["any"]
        text = " ".join(words)
        rows["classification"].append(f"{text},{'food' if num_food > num_sport else 'sport'}")
        rows["multi-label"].append(f"{text},{';'.join(labels)}")
        rows["regression"].append(f"{text},{num_food - num_sport / 2 + 0.25}")
        tags = ["F" if word in food else "S" if word in sport else "O" for word in words]
        rows["token-classification"].append(json.dumps({"text": words, "label": tags}))
    for task, name in TABLES.items():
        head = [] if name.endswith("jsonl") else ["text,label"]
        (folder / name).write_text("\n".join([*head, *rows[task]]) + "\n", encoding="utf-8")


def train(folder, ranks, *, sharding, **options):
    """A few updates, the same samples in each on any number of processes; weights put together, and scores."""
    config = TrainConfig(
        data=str(folder / TABLES[options["task"]]),
        **options,
        sharding=sharding,
        micro_batch_size=8,
        global_batch_size=GLOBAL_BATCH_SIZE,
        max_steps=MAX_STEPS,
        precision="32-true",
        device="cpu",
    )
    with distributed.main_process_first(ranks):
        data = load_data(config, RunFolder(folder / "none"), progress=False)
    seed_everything(config.seed)
    parts = build_components(config, data, torch.device("cpu"), ranks, settled=None)
    for module in parts.model.modules():
        if isinstance(
            module, Dropout
        ):  # n-grams have one that no key turns off; each process draws by itself
            module.p = module.threshold = 0
    fit(distributed.wrap_ddp(parts.model), parts.batches, parts.optimizer, **parts.of_fit(config))
    scores = evaluate(parts.model, parts.validation_batches, loss=parts.loss)
    weights = {name: distributed.whole(part).clone() for name, part in parts.model.state_dict().items()}
    return {"weights": weights, "scores": {name: float(value) for name, value in scores.items()}}


def train_all(folder, ranks):
    return {
        f"{name}, {sharding}": train(folder, ranks, sharding=sharding, **options)
        for name, options in CASES.items()
        for sharding in (("ddp", "fsdp") if "num_layers" in options else ("ddp",))
    }


def main(folder):
    ranks = distributed.setup("cpu")
    torch.save(train_all(folder, ranks), folder / f"rank{ranks.rank}.pt")
    distributed.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
