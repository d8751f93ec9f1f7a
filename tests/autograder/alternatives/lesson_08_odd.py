"""Right solutions of lesson 08 in ways that are seldom taken, of the exercises whose checks could mistake them."""

# %%
import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, get_worker_info

from autograder import exercise


def own_generator(worker_id: int) -> None:
    get_worker_info().dataset.rng = np.random.default_rng([worker_id, torch.initial_seed()])


@exercise("8.1")
def seed_everything(seed: int, dataset: Any, micro_batch_size: int = 32, num_workers: int = 0) -> DataLoader:
    """Batches come from a sampler of batches; workers, if there are any, live on from epoch to epoch."""
    for seed_one in (random.seed, np.random.seed, torch.manual_seed):
        seed_one(seed)
    dataset.rng = np.random.default_rng(seed)
    order = RandomSampler(dataset, generator=torch.Generator().manual_seed(seed + 1))
    return DataLoader(
        dataset,
        batch_sampler=BatchSampler(order, micro_batch_size, drop_last=False),
        num_workers=num_workers,
        worker_init_fn=own_generator,
        persistent_workers=num_workers > 0,
        generator=torch.Generator().manual_seed(seed),
    )


# %%
import difflib
import hashlib
from dataclasses import dataclass, field
from typing import Any

import yaml

from autograder import exercise


@exercise("8.2")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Values are made right in `__post_init__`, so that a config made of values is strict too."""

    name: str
    learning_rate: float = 1e-3
    micro_batch_size: int = 32
    max_epochs: int = 3
    is_deterministic: bool = False
    class_weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, value in vars(self).copy().items():
            object.__setattr__(self, key, self.made_right(key, value))

    @classmethod
    def made_right(cls, key: str, value: Any) -> Any:
        kind = {"name": str, "learning_rate": float, "is_deterministic": bool, "class_weights": dict}.get(
            key, int
        )
        if kind is dict and type(value) is dict:
            if {*map(type, value)} - {str}:
                raise ValueError(f"{key} has labels that are no str: change {value!r}")
            return {label: cls.made_right("learning_rate", weight) for label, weight in value.items()}
        if kind is float and type(value) in (int, str):
            try:
                return float(value)
            except ValueError:
                pass
        if type(value) is not kind:
            raise ValueError(f"{key} or a part of it should be {kind.__name__}, and is {value!r}: change it")
        return value

    @classmethod
    def from_text(cls, text: str) -> "RunConfig":
        found = yaml.safe_load(text)
        if not hasattr(found, "keys") or found.pop("version", "none") != 2:
            raise ValueError("Version 2 is needed: say `version: 2`")
        known = list(cls.__dataclass_fields__)
        for key in set(found).difference(known):
            (near,) = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise ValueError(f"{key} is unknown; nearest: {near}; known are {', '.join(known)}")
        try:
            return cls(**found)
        except ValueError as error:
            raise ValueError(
                str(error).replace("learning_rate or", "class_weights, learning_rate or")
            ) from None

    def to_text(self) -> str:
        return yaml.safe_dump({**vars(self), "version": 2}, allow_unicode=True)

    @property
    def fingerprint(self) -> int:
        shaping = sorted(
            (key, value + 0) for key, value in vars(self).items() if key not in ("name", "class_weights")
        )
        weights = sorted((key, weight + 0.0) for key, weight in self.class_weights.items())
        return int.from_bytes(hashlib.sha256(repr((shaping, weights)).encode()).digest()[:8], "big")


# %%
import hashlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from autograder import exercise


def digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123
        while block := file.read(1 << 16):
            digest.update(block)
    return digest.hexdigest()


@exercise("8.3")
def record_run(train, config, data_path, out, git):
    """Written beside its place and moved there; training is given a copy, so that the config stays as it was."""
    about_code = {
        "commit": git("log", "-1", "--format=%H").strip(),
        "is_dirty": len(git("status", "--short")) > 0,
    }
    record = {"status": "failed", "failure": "", "config": config, "git": about_code}
    record["data"] = {"sha256": digest_of(data_path)}
    record["environment"] = {"python": sys.version, "torch": version("torch"), "numpy": version("numpy")}
    record["hardware"] = {"num_cores": len(os.sched_getaffinity(0)), "num_threads": torch.get_num_threads()}
    record.update(metrics=None, artifacts={}, times={})
    try:
        labels, predictions, slices = train(json.loads(json.dumps(config)), out)
    except BaseException as error:
        record["failure"] = str(error) + f" ({error!r})"
        raise
    else:
        hit = np.equal(labels, predictions)
        names, where, sizes = np.unique(slices, return_inverse=True, return_counts=True)
        hits = np.bincount(where, weights=hit) / sizes
        record["metrics"] = {
            "accuracy": hit.sum().item() / hit.size,
            "slices": {
                name: {"accuracy": share, "num_samples": size}
                for name, share, size in zip(names.tolist(), hits.tolist(), sizes.tolist(), strict=True)
            },
        }
        record.update(status="finished", failure=None)
    finally:
        for folder, _, files in os.walk(out):
            for file in files:
                path = Path(folder) / file
                record["artifacts"][path.relative_to(out).as_posix()] = digest_of(path)
        beside = out / "run.json.part"
        with beside.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, out / "run.json")  # noqa: PTH105
    return record


# %%
from course_lib.data import collate
from course_lib.training.reproducibility import rng_state, seed_everything, set_rng_state

import torch
from torch.nn.functional import cross_entropy

from autograder import exercise


@exercise("8.4")
class Run:
    """The order comes from a generator of torch's own, whose state is saved; gradients sample by sample."""

    def __init__(self, seed, make_model, samples):
        seed_everything(seed)
        self.samples, self.model = samples, make_model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2, foreach=False)
        self.generator = torch.Generator().manual_seed(seed)
        self.waiting = []

    def train(self, num_steps):
        self.model.train(True)
        for _ in range(num_steps):
            if not self.waiting:
                self.waiting = torch.randperm(len(self.samples), generator=self.generator).tolist()
            now, self.waiting = self.waiting[:4], self.waiting[4:]
            rows = [self.samples[i] for i in now]

            def closure(rows=rows):
                self.optimizer.zero_grad()
                total = 0.0
                for row in rows:
                    one = collate([row])
                    logits = self.model(one["input_ids"], one["attention_mask"])
                    loss = cross_entropy(logits.float(), one["labels"]) / len(rows)
                    loss.backward()
                    total += loss.item()
                return total

            self.optimizer.step(closure)

    def state_dict(self):
        own = {"generator": self.generator.get_state(), "waiting": self.waiting, "global": rng_state()}
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), **own}

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.waiting = list(state["waiting"])
        set_rng_state(state["global"])


# %%
from scipy.stats import ttest_rel

from autograder import exercise


@exercise("8.5")
def did_it_help(baseline, candidate, margin):
    """SciPy's paired test has the interval."""
    if len(baseline) < 5:
        return "undecided"
    low, high = ttest_rel(candidate, baseline).confidence_interval()
    answers = [(low > 0, "better"), (low > -margin, "no worse"), (high < 0, "worse"), (True, "undecided")]
    return next(answer for holds, answer in answers if holds)


# %%
import contextlib
import random
import statistics

import torch
from scipy import stats

from autograder import exercise


@exercise("8.6")
def cost_of_determinism(step, clock):
    """Eight pairs of seven steps, which setting comes first drawn for each; Student's interval."""
    with contextlib.ExitStack() as later:
        was_on, warned = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        later.callback(torch.use_deterministic_algorithms, was_on, warn_only=warned)
        later.callback(setattr, torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
        torch.backends.cudnn.benchmark = False

        def seconds(setting):
            torch.use_deterministic_algorithms(setting)
            start = clock()
            for _ in range(7):
                step()
            return clock() - start

        for setting in (True, False, True):
            seconds(setting)
        logs = []
        for first in random.sample([True, False] * 8, 16):
            taken = {first: seconds(first), (not first): seconds(not first)}
            logs.append(float(torch.tensor(taken[True] / taken[False], dtype=torch.float64).log()))
    middle, error = statistics.fmean(logs), statistics.stdev(logs) / len(logs) ** 0.5
    far = stats.t.ppf(0.975, len(logs) - 1) * error
    return {
        name: 2.718281828459045 ** (middle + sign * far)
        for name, sign in {"ratio": 0, "low": -1, "high": 1}.items()
    }
