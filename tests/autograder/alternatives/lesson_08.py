"""Another right solution of each exercise of lesson 08, in another style than the first."""

# %%
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler, get_worker_info

from autograder import exercise


class OrderBySeedAndEpoch(Sampler[int]):
    """A shuffle that asks no shared generator: the order of epoch e follows from (seed, e)."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed, self.epoch = number, seed, -1

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        yield from np.random.default_rng([self.seed, self.epoch]).permutation(self.number).tolist()


def seed_worker(worker_id: int) -> None:
    info = get_worker_info()
    python, numpy, own = np.random.SeedSequence(info.seed).spawn(3)
    random.seed(int(python.generate_state(1)[0]))
    np.random.seed(numpy.generate_state(4))
    info.dataset.rng = np.random.default_rng(own)


@exercise("8.1")
def seed_everything(seed: int, dataset: Any, micro_batch_size: int = 32, num_workers: int = 0) -> DataLoader:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    dataset.rng = np.random.Generator(np.random.PCG64(seed))
    return DataLoader(
        dataset,
        sampler=OrderBySeedAndEpoch(len(dataset), seed),
        batch_size=micro_batch_size,
        num_workers=num_workers,
        worker_init_fn=seed_worker,
        generator=torch.Generator().manual_seed(seed),
    )


# %%
import difflib
import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any

import yaml

from autograder import exercise

VERSION = 2


def as_number(value: Any, kind: type) -> int | float:
    if isinstance(value, str):
        value = kind(value)  # a ValueError of its own for text that is no number
    if isinstance(value, bool) or not isinstance(value, int if kind is int else Real):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return kind(value)


def as_is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def as_weights(value: Any) -> dict[str, float]:
    return {as_is(name, str): as_number(weight, float) for name, weight in as_is(value, dict).items()}


READERS = {
    "name": lambda value: as_is(value, str),
    "learning_rate": lambda value: as_number(value, float),
    "micro_batch_size": lambda value: as_number(value, int),
    "max_epochs": lambda value: as_number(value, int),
    "is_deterministic": lambda value: as_is(value, bool),
    "class_weights": as_weights,
}


@exercise("8.2")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    name: str
    learning_rate: float = 1e-3
    micro_batch_size: int = 32
    max_epochs: int = 3
    is_deterministic: bool = False
    class_weights: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str) -> "RunConfig":
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            try:
                found = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(f"neither JSON nor YAML: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("a config is a mapping: write `key: value` lines, and the version")
        version = found.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise ValueError(f"this code reads version: {VERSION}, the text has version: {version}")
        known = [one.name for one in fields(cls)]
        for key in found.keys() - set(known):
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown key {key!r}; did you mean {near!r}?")
        if "name" not in found:
            raise ValueError("the key 'name' is missing: add it")
        values = {}
        for key, value in found.items():
            try:
                values[key] = READERS[key](value)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        return cls(**values)

    def to_text(self) -> str:
        return json.dumps({"version": VERSION} | asdict(self), indent=1)

    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for one in sorted(fields(self), key=lambda one: one.name):
            if one.name != "name":
                value = READERS[one.name](getattr(self, one.name))
                if isinstance(value, dict):
                    value = sorted((key, weight + 0.0) for key, weight in value.items())
                elif isinstance(value, float):
                    value += 0.0
                digest.update(f"{one.name}={value!r}\n".encode())
        return digest.hexdigest()


# %%
import contextlib
import hashlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def every_file(folder: Path) -> Iterator[tuple[str, Path]]:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            yield path.relative_to(folder).as_posix(), path


def judged(labels: np.ndarray, predictions: np.ndarray, slices: list[str]) -> dict[str, Any]:
    hits = defaultdict(list)
    for name, label, prediction in zip(slices, labels, predictions, strict=True):
        hits[str(name)].append(bool(label == prediction))
    both = [hit for some in hits.values() for hit in some]
    return {
        "accuracy": sum(both) / len(both),
        "slices": {
            name: {"accuracy": sum(some) / len(some), "num_samples": len(some)}
            for name, some in sorted(hits.items())
        },
    }


class Record(contextlib.AbstractContextManager):
    """Begun before the training, written at its end, whatever the end."""

    def __init__(self, config: dict, data_path: Path, out: Path, git: Callable[..., str]) -> None:
        self.out, self.start = out, time.time()
        self.values = {
            "status": "finished",
            "failure": None,
            "config": json.loads(json.dumps(config)),
            "git": {
                "commit": git("rev-parse", "HEAD").strip(),
                "is_dirty": git("status", "--porcelain").strip() != "",
            },
            "data": {"sha256": digest(data_path)},
            "environment": {
                "python": ".".join(map(str, sys.version_info[:3])),
                "torch": str(torch.__version__),
                "numpy": np.__version__,
            },
            "hardware": {"num_cores": os.cpu_count(), "num_threads": torch.get_num_threads()},
            "metrics": None,
            "artifacts": {},
        }

    def __exit__(self, kind, error, trace) -> None:
        if error is not None:
            self.values |= {"status": "failed", "failure": f"{kind.__name__}: {error}"}
        self.out.mkdir(parents=True, exist_ok=True)
        self.values["artifacts"] = {
            name: digest(path) for name, path in sorted(every_file(self.out)) if name != "run.json"
        }
        self.values["times"] = {"began": self.start, "seconds": time.time() - self.start}
        (self.out / "run.json").write_text(json.dumps(self.values, indent=1), encoding="utf-8")


@exercise("8.3")
def record_run(
    train: Callable[[dict[str, Any], Path], tuple[np.ndarray, np.ndarray, list[str]]],
    config: dict[str, Any],
    data_path: Path,
    out: Path,
    git: Callable[..., str],
) -> dict[str, Any]:
    with Record(config, data_path, out, git) as record:
        out.mkdir(parents=True, exist_ok=True)
        record.values["metrics"] = judged(*train(config, out))
    return record.values


# %%
import contextlib
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from autograder import exercise
from course_lib.data import collate

ROWS = 4


def global_luck() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    return {
        "python": [version, list(words), gauss],
        "numpy": [name, keys.tolist(), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
    }


def put_back(luck: dict[str, Any]) -> None:
    version, words, gauss = luck["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, *rest = luck["numpy"]
    np.random.set_state((name, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(luck["torch"])


@exercise("8.4")
class Run:
    """Keeps its own state of the global generators, and lends it to the process while it works."""

    def __init__(
        self,
        seed: int,
        make_model: Callable[[], torch.nn.Module],
        samples: Sequence[tuple[np.ndarray, int]],
    ) -> None:
        self.seed, self.samples, self.step = seed, samples, 0
        before = global_luck()
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        self.luck = global_luck()
        put_back(before)
        with self.own_luck():
            self.model = make_model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    @contextlib.contextmanager
    def own_luck(self) -> Iterator[None]:
        before = global_luck()
        put_back(self.luck)
        try:
            yield
        finally:
            self.luck = global_luck()
            put_back(before)

    def places(self, step: int) -> list[int]:
        per_epoch = -(-len(self.samples) // ROWS)
        epoch, batch = divmod(step, per_epoch)
        keys = np.random.default_rng([self.seed, epoch, 84]).random(len(self.samples))
        return np.argsort(keys)[batch * ROWS : (batch + 1) * ROWS].tolist()

    def train(self, num_steps: int) -> None:
        with self.own_luck():
            self.model.train()
            for _ in range(num_steps):
                batch = collate([self.samples[i] for i in self.places(self.step)])
                logits = self.model(batch["input_ids"], batch["attention_mask"])
                chosen = logits.log_softmax(1).gather(1, batch["labels"].view(-1, 1))
                self.optimizer.zero_grad()
                (-chosen.mean()).backward()
                self.optimizer.step()
                self.step += 1

    def state_dict(self) -> dict[str, Any]:
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return copy.deepcopy(parts | {"luck": self.luck, "step": self.step})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        state = copy.deepcopy(state)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.luck, self.step = state["luck"], state["step"]


# %%
import numpy as np
from scipy import stats

from autograder import exercise


def chance(values: np.ndarray) -> float:
    """How often Student's t is as high as that of these values, if their true mean is 0."""
    error = values.std(ddof=1) / np.sqrt(values.size)  # 0 where all are equal: t is then infinite, or NaN
    return float(stats.t.sf(values.mean() / error, values.size - 1))


@exercise("8.5")
def did_it_help(baseline: np.ndarray, candidate: np.ndarray, margin: float) -> str:
    change = np.subtract(candidate, baseline)
    if change.size < 5:
        return "undecided"
    questions = {"better": change, "no worse": change + margin, "worse": -change}
    return next((name for name, asked in questions.items() if chance(asked) < 0.025), "undecided")


# %%
import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import stats

from autograder import exercise

WARM_UP, BLOCKS, STEPS = 30, 120, 4


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    is_on = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    searches = torch.backends.cudnn.benchmark
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(is_on, warn_only=warns)
        torch.backends.cudnn.benchmark = searches


@exercise("8.6")
def cost_of_determinism(step: Callable[[], object], clock: Callable[[], float]) -> dict[str, float]:
    """The median over ABBA and BAAB blocks, with the interval that two order statistics give."""
    searches = torch.backends.cudnn.benchmark

    def seconds(with_it: bool, steps: int = STEPS) -> float:
        torch.backends.cudnn.benchmark = searches and not with_it
        torch.use_deterministic_algorithms(with_it)
        start = clock()
        for _ in range(steps):
            step()
        return clock() - start

    logs = []
    with settings_kept():
        for with_it in (True, False):
            seconds(with_it, WARM_UP // 2)
        for block in range(BLOCKS):
            first = block % 2 == 0
            taken = {True: 0.0, False: 0.0}
            for with_it in (first, not first, not first, first):
                taken[with_it] += seconds(with_it)
            logs.append(np.log(taken[True] / taken[False]))
    logs.sort()
    place = int(stats.binom.ppf(0.025, BLOCKS, 0.5)) - 1
    low, ratio, high = np.exp([logs[place], np.median(logs), logs[-1 - place]]).tolist()
    return {"ratio": ratio, "low": low, "high": high}
