# Right solutions of lesson 08 as people wrote them who had seen its notebook alone.

# %%
import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

from autograder import exercise


class ShuffledBatches:
    """Lists of indices; Python's own Mersenne twister, private to this object, shuffles the deck each epoch."""

    def __init__(self, size, rows, seed):
        self.deck = list(range(size))
        self.rows = rows
        self.dealer = random.Random(f"order of {seed}")

    def __len__(self):
        return -(-len(self.deck) // self.rows)

    def __iter__(self):
        self.dealer.shuffle(self.deck)
        deck = tuple(self.deck)  # a second iterator must not pull the cards from under this one
        return (list(deck[at : at + self.rows]) for at in range(0, len(deck), self.rows))


def seed_worker(worker_id: int) -> None:
    fresh = np.random.default_rng(torch.initial_seed())
    random.seed(fresh.bytes(32))
    np.random.seed(fresh.integers(2**32, size=8, dtype=np.uint32))
    get_worker_info().dataset.rng = fresh


@exercise("8.1")
def seed_everything(seed: int, dataset: Any, micro_batch_size: int = 32, num_workers: int = 0) -> DataLoader:
    """A running list is shuffled in place; workers follow from `torch.initial_seed()`."""
    for sow in (random.seed, np.random.seed, torch.manual_seed):
        sow(seed)
    dataset.rng = np.random.default_rng([seed, 0xDA7A])
    seeds_of_workers = torch.Generator()
    seeds_of_workers.manual_seed(seed)
    return DataLoader(
        dataset,
        batch_sampler=ShuffledBatches(len(dataset), micro_batch_size, seed),
        num_workers=num_workers,
        worker_init_fn=seed_worker,
        generator=seeds_of_workers,
    )


# %%
import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import yaml

from autograder import exercise

VERSION = 2


def common(a: str, b: str) -> float:
    """2 · longest common subsequence / total length."""

    @cache
    def longest(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        if a[i] == b[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return 2 * longest(0, 0) / max(1, len(a) + len(b))


def convert(kind: Any, value: Any) -> Any:
    match kind, value:
        case ("str", str()) | ("bool", bool()):
            return value
        case ("float" | "int", bool()):
            pass  # bool is a subclass of int: it must not get further
        case ("int", int()):
            return value
        case ("int", str()):
            return int(value)
        case ("float", int() | float() | str()):
            return float(value)
        case ("dict", dict()):
            return {convert("str", k): convert("float", v) for k, v in value.items()}
    raise ValueError


@exercise("8.2")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Patterns of (type of the field, value); the nearest key, the version among them, by common letters."""

    name: str
    learning_rate: float = 1e-3
    micro_batch_size: int = 32
    max_epochs: int = 3
    is_deterministic: bool = False
    class_weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            kind = "dict" if isinstance(one.default_factory, type) else one.type
            kind = kind if isinstance(kind, str) else kind.__name__
            try:
                object.__setattr__(self, one.name, convert(kind, value))
            except (ValueError, OverflowError):
                raise ValueError(f"{one.name}: {value!r} is no {kind}; change it to one") from None

    @classmethod
    def from_text(cls, text: str) -> "RunConfig":
        given = cls._parse(text)
        version = given.pop("version", None)
        names = [one.name for one in fields(cls)]
        unknown = [
            f"unknown key {key}, the nearest known one is "
            + max([*names, "version"], key=lambda name, key=key: common(str(key), name))
            for key in given
            if key not in names
        ]
        if type(version) is not int or version != VERSION:
            raise ValueError(" | ".join([f"version must be {VERSION}, and it is {version}", *unknown]))
        if unknown:
            raise ValueError(" | ".join(unknown))
        if "name" not in given:
            raise ValueError("name has no default: give one")
        return cls(**given)

    @staticmethod
    def _parse(text: str) -> dict:
        try:
            given = json.loads(text)
        except json.JSONDecodeError:
            try:
                given = yaml.load(text, Loader=yaml.SafeLoader)
            except yaml.YAMLError as error:
                raise ValueError(f"this is neither JSON nor YAML: {error}") from error
        return dict(given) if isinstance(given, dict) else {}

    def to_text(self) -> str:
        return json.dumps({"version": VERSION} | vars(self), indent=1)

    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=16)

        def feed(*parts: object) -> None:
            for part in parts:
                data = repr(part).encode("utf-8", "backslashreplace")
                digest.update(len(data).to_bytes(8, "big") + data)

        feed(self.learning_rate + 0.0, self.micro_batch_size, self.max_epochs, self.is_deterministic)
        for key in sorted(self.class_weights):
            feed(key, self.class_weights[key] + 0.0)
        return digest.hexdigest()


# %%
import copy
import dataclasses
import hashlib
import json
import os
import platform
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch

from autograder import exercise


@dataclass
class Score:
    accuracy: float
    num_samples: int


@dataclass
class Metrics:
    accuracy: float
    slices: dict[str, Score]


@dataclass
class Git:
    commit: str
    is_dirty: bool


@dataclass
class Record:
    config: dict[str, Any]
    git: Git
    data: dict[str, str]
    environment: dict[str, str]
    hardware: dict[str, Any]
    status: str = "failed"
    failure: str | None = None
    metrics: Metrics | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tally(labels: np.ndarray, predictions: np.ndarray, slices: list[str]) -> Metrics:
    of, right = Counter(), Counter()
    for label, prediction, name in zip(labels.tolist(), predictions.tolist(), slices, strict=True):
        of[name] += 1
        right[name] += label == prediction
    scores = {name: Score(right[name] / of[name], of[name]) for name in of}
    return Metrics(right.total() / of.total(), scores)


@exercise("8.3")
def record_run(
    train: Callable[[dict[str, Any], Path], tuple[np.ndarray, np.ndarray, list[str]]],
    config: dict[str, Any],
    data_path: Path,
    out: Path,
    git: Callable[..., str],
) -> dict[str, Any]:
    """Dataclasses for the parts; the error is kept as a value, and raised after the file is on the disk."""
    record = Record(
        config=copy.deepcopy(config),
        git=Git(
            commit=git("rev-parse", "HEAD").strip(),
            is_dirty=any(line.strip() for line in git("status", "--porcelain").splitlines()),
        ),
        data={"sha256": fingerprint(data_path)},
        environment={
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": np.version.version,
        },
        hardware={
            "num_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "num_threads": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        },
    )
    before, error = time.time(), None
    try:
        record.metrics = tally(*train(config, out))
        record.status = "finished"
    except BaseException as caught:  # Ctrl-C too
        error = caught
        record.failure = "".join(traceback.format_exception_only(caught)).strip()
        if str(caught) not in record.failure:  # it quotes some messages in a way of its own
            record.failure += f"\n{caught}"
    after = time.time()
    record.times = {"start": before, "end": after}
    for folder, _, names in os.walk(out):
        for name in names:
            path = Path(folder, name)
            record.artifacts[str(PurePosixPath(*path.relative_to(out).parts))] = fingerprint(path)
    record.artifacts = dict(sorted(record.artifacts.items()))

    text = json.dumps(dataclasses.asdict(record), indent=2)
    handle, name = tempfile.mkstemp(dir=out, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, out / "run.json")  # noqa: PTH105
    if error is not None:
        raise error
    return json.loads(text)


# %%
import copy
import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from autograder import exercise


def number(*words: object) -> int:
    """64 bits that follow from the words, in every process."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8], "big")


class Luck:
    """Inside `with Luck(…)`, all global generators follow from the words; afterwards they are as they were."""

    def __init__(self, *words: object) -> None:
        self.root = number(*words)

    def __enter__(self) -> None:
        self.kept = random.getstate(), np.random.get_state()
        self.torch = torch.random.fork_rng()
        self.torch.__enter__()
        random.seed(number(self.root, "python"))
        np.random.seed(np.random.SeedSequence(number(self.root, "numpy")).generate_state(8))
        torch.manual_seed(number(self.root, "torch") >> 1)

    def __exit__(self, *failure: object) -> None:
        self.torch.__exit__(*failure)
        random.setstate(self.kept[0])
        np.random.set_state(self.kept[1])


@exercise("8.4")
class Run:
    """All generators are seeded anew for each step, from (seed, step): there is no state of theirs to save."""

    def __init__(
        self,
        seed: int,
        make_model: Callable[[], torch.nn.Module],
        samples: Sequence[tuple[np.ndarray, int]],
    ) -> None:
        self.seed = int(seed)
        self.samples = samples
        self.done = 0
        with Luck(self.seed, "weights"):
            self.model = make_model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

    def _order(self, epoch: int) -> list[int]:
        """Sorted by hash: a shuffle without any generator."""
        return sorted(range(len(self.samples)), key=lambda i: (number(self.seed, "order", epoch, i), i))

    def _batch(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        texts, labels = [], []
        for index in indices:
            ids, label = self.samples[index]
            texts.append(torch.tensor(np.asarray(ids, dtype=np.int64)))
            labels.append(int(label))
        input_ids = pad_sequence(texts, batch_first=True)
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
        return input_ids, mask, torch.tensor(labels)

    def train(self, num_steps: int) -> None:
        self.model.train()
        for _ in range(num_steps):
            epoch, first = divmod(4 * self.done, 4 * ((len(self.samples) + 3) // 4))
            self.done += 1
            with Luck(self.seed, "step", self.done):
                input_ids, mask, labels = self._batch(self._order(epoch)[first : first + 4])
                self.optimizer.zero_grad(set_to_none=True)
                log_p = self.model(input_ids, mask).log_softmax(dim=-1)
                (-log_p.gather(1, labels[:, None]).mean()).backward()
                self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {"done": self.done, **copy.deepcopy(parts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = int(state["done"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))


# %%
import math
from functools import cache

import numpy as np
from scipy.special import betainc

from autograder import exercise


@cache
def quantile(degrees: int, beyond: float = 0.05) -> float:
    """t with P(|T| > t) = beyond, for Student's T."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        if betainc(degrees / 2, 0.5, degrees / (degrees + middle * middle)) > beyond:
            low = middle
        else:
            high = middle
    return high


class Running:
    """Mean and spread of numbers that come one at a time (Welford 1962)."""

    def __init__(self):
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value):
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)

    def interval(self):
        error = math.sqrt(self.squares / (self.count - 1) / self.count)
        half = quantile(self.count - 1) * error
        return self.mean - half, self.mean + half


@exercise("8.5")
def did_it_help(baseline: np.ndarray, candidate: np.ndarray, margin: float) -> str:
    """Without `scipy.stats`: a running mean and spread, and the quantile by bisection."""
    differences = Running()
    for old, new in zip(baseline, candidate, strict=True):
        differences.add(float(new) - float(old))
    if differences.count < 5:
        return "undecided"
    low, high = differences.interval()
    sentences = (("better", low > 0), ("no worse", low > -margin), ("worse", high < 0))
    return next((sentence for sentence, holds in sentences if holds), "undecided")


# %%
import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import stats

from autograder import exercise


@contextlib.contextmanager
def switches_kept() -> Iterator[bool]:
    cudnn = torch.backends.cudnn
    is_on = torch.are_deterministic_algorithms_enabled()
    warns_only = torch.is_deterministic_algorithms_warn_only_enabled()
    benchmark = cudnn.benchmark
    try:
        yield benchmark
    finally:
        cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(is_on, warn_only=warns_only)


def regress(logs: np.ndarray, first: np.ndarray) -> tuple[float, float]:
    """log ratio = cost + effect · first + noise, by least squares: cost and its standard error."""
    design = np.column_stack([np.ones(len(logs)), first])
    solution, *_ = np.linalg.lstsq(design, logs, rcond=None)
    rest = logs - design @ solution
    variance = rest @ rest / (len(logs) - 2)
    return solution[0], np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])


@exercise("8.6")
def cost_of_determinism(step: Callable[[], object], clock: Callable[[], float]) -> dict[str, float]:
    """A balanced random order; a regression on who came first takes out what drifts inside a pair."""
    num_pairs = 900
    # +1: the deterministic step comes first. Half of each sign, shuffled by a generator that nobody else draws from.
    first = np.random.default_rng(2).permutation(np.repeat([1, -1], num_pairs // 2))
    with switches_kept() as benchmark:

        def timed(is_on: bool) -> float:
            if is_on:
                torch.backends.cudnn.benchmark = False
                torch.use_deterministic_algorithms(True)
            else:
                torch.use_deterministic_algorithms(False)
                torch.backends.cudnn.benchmark = benchmark
            began = clock()
            step()
            return clock() - began

        for warm in range(40):
            timed(warm % 2 == 0)
        times = np.empty((num_pairs, 2))  # columns: without, with
        for row, sign in zip(times, first, strict=True):
            for is_on in (sign > 0, sign < 0):
                row[int(is_on)] = timed(bool(is_on))

    cost, error = regress(np.log(times[:, 1]) - np.log(times[:, 0]), first)
    half = stats.norm.ppf(0.975) * error
    ratio, low, high = np.exp([cost, cost - half, cost + half]).tolist()
    return {"ratio": ratio, "low": low, "high": high}
