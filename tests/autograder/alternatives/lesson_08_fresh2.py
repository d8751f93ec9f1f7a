"""Right solutions of lesson 08 by strangers of a second round, of kinds that the others are not."""

# %%
import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

from autograder import exercise


def seed_worker(worker_id: int) -> None:
    # torch has seeded its own, Python's and NumPy's generators of this worker already
    info = get_worker_info()
    info.dataset.rng = np.random.Generator(np.random.PCG64DXSM(info.seed))


class SeededLoader(DataLoader):
    """Epoch e depends on (seed, e), and not on what was read before."""

    def __init__(self, dataset: Any, seed: int, **options: Any) -> None:
        super().__init__(
            dataset,
            shuffle=True,
            generator=torch.Generator(),
            worker_init_fn=seed_worker,
            **options,
        )
        self.run_seed = seed
        self.num_epochs_begun = 0

    def __iter__(self):
        words = np.random.SeedSequence([self.run_seed, self.num_epochs_begun]).generate_state(2, np.uint64)
        self.generator.manual_seed(int(words[0]) % 2**63)
        if self.num_workers == 0:
            self.dataset.rng = np.random.default_rng(int(words[1]))
        self.num_epochs_begun += 1
        return super().__iter__()


@exercise("8.1")
def seed_everything(seed: int, dataset: Any, micro_batch_size: int = 32, num_workers: int = 0) -> DataLoader:
    """A subclass of DataLoader seeds its own generator from (seed, epoch) as each epoch begins."""
    for set_seed in (random.seed, np.random.seed, torch.manual_seed):
        set_seed(seed)
    dataset.rng = np.random.default_rng(seed)
    return SeededLoader(dataset, seed, batch_size=micro_batch_size, num_workers=num_workers)


# %%
import difflib
import hashlib
import json
import struct
from dataclasses import dataclass, field, fields
from typing import Any

import yaml

from autograder import exercise

VERSION = 2


def parse(text: str) -> dict[Any, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"cannot read the text as YAML or JSON: {error}") from error
    match found:
        case dict():
            return found
        case _:
            raise ValueError("no version: a config is a mapping that holds 'version: 2'")


def number(value: Any, name: str) -> float:
    match value:
        case bool():
            pass
        case int() | float() | str():
            try:
                return float(value)
            except (ValueError, OverflowError):
                pass
    raise ValueError(f"{name}: {value!r} is no number; write one such as 0.001")


def convert(name: str, value: Any) -> Any:
    match name, value:
        case "name", str():
            return value
        case "learning_rate", _:
            return number(value, name)
        case (("micro_batch_size" | "max_epochs"), int()) if not isinstance(value, bool):
            return value
        case "is_deterministic", bool():
            return value
        case "class_weights", dict() if all(isinstance(key, str) for key in value):
            return {key: number(weight, f"class_weights[{key!r}]") for key, weight in value.items()}
    raise ValueError(f"{name}: {value!r} has the wrong type")


@exercise("8.2")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """JSON before YAML, and JSON again in `to_text`; packed binary values are hashed."""

    name: str
    learning_rate: float = 1e-3
    micro_batch_size: int = 32
    max_epochs: int = 3
    is_deterministic: bool = False
    class_weights: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str) -> "RunConfig":
        raw = parse(text)
        names = [item.name for item in fields(cls)]
        for key in raw:
            if key not in ("version", *names):
                wanted = str(key)
                nearest = max(
                    ("version", *names),
                    key=lambda known: difflib.SequenceMatcher(None, known, wanted).ratio(),
                )
                raise ValueError(f"version {VERSION} has no key {wanted!r}; the nearest is {nearest!r}")
        match raw.get("version"):
            case bool() | float():
                raise ValueError(f"version must be the whole number {VERSION}")
            case 2:
                pass
            case other:
                raise ValueError(f"version must be {VERSION}, and is {other!r}")
        if "name" not in raw:
            raise ValueError("name: this field has no default, add it")
        return cls(**{key: convert(key, raw[key]) for key in names if key in raw})

    def to_text(self) -> str:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return json.dumps({"version": VERSION} | values, indent=2)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        digest.update(struct.pack("<d", self.learning_rate + 0.0))
        for whole in (self.micro_batch_size, self.max_epochs, int(self.is_deterministic)):
            digest.update(f"{whole:d};".encode())
        for key in sorted(self.class_weights):
            encoded = key.encode("utf-8", "surrogatepass")
            digest.update(struct.pack("<Q", len(encoded)) + encoded)
            digest.update(struct.pack("<d", self.class_weights[key] + 0.0))
        return digest.hexdigest()


# %%
import copy
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Recorder:
    def __init__(self, config: dict[str, Any], data_path: Path, out: Path, git: Callable[..., str]) -> None:
        self.config, self.data_path, self.out, self.git = config, Path(data_path), Path(out), git
        self.metrics: dict[str, Any] | None = None

    def __enter__(self) -> "Recorder":
        self.record = {
            "status": "finished",
            "failure": None,
            "config": copy.deepcopy(self.config),
            "git": {
                "commit": self.git("rev-parse", "HEAD").strip(),
                "is_dirty": self.git("status", "--porcelain").strip() != "",
            },
            "data": {"sha256": sha256_of(self.data_path)},
            "environment": {
                "python": platform.python_version(),
                "torch": str(torch.__version__),
                "numpy": np.__version__,
            },
            "hardware": {
                "num_cores": os.cpu_count(),
                "num_threads": torch.get_num_threads(),
                "machine": platform.machine(),
            },
        }
        self.began, self.clock = time.time(), time.perf_counter()
        return self

    def judge(self, labels: np.ndarray, predictions: np.ndarray, slices: list[str]) -> None:
        correct = np.asarray(labels) == np.asarray(predictions)
        per_slice = {}
        for name in sorted(set(slices)):
            inside = np.array([other == name for other in slices])
            per_slice[name] = {
                "accuracy": float(correct[inside].mean()),
                "num_samples": int(inside.sum()),
            }
        self.metrics = {"accuracy": float(correct.mean()), "slices": per_slice}

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is not None:
            self.metrics = None
            self.record["status"] = "failed"
            self.record["failure"] = f"{kind.__name__}: {error}"
        target = self.out / "run.json"
        self.record["metrics"] = self.metrics
        self.record["artifacts"] = {
            path.relative_to(self.out).as_posix(): sha256_of(path)
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and path != target
        }
        self.record["times"] = {
            "began_unix": self.began,
            "seconds": time.perf_counter() - self.clock,
        }
        target.write_text(json.dumps(self.record, indent=2) + "\n", encoding="utf-8")
        return False


@exercise("8.3")
def record_run(
    train: Callable[[dict[str, Any], Path], tuple[np.ndarray, np.ndarray, list[str]]],
    config: dict[str, Any],
    data_path: Path,
    out: Path,
    git: Callable[..., str],
) -> dict[str, Any]:
    """A context manager asks what holds as it is entered, and writes whatever comes as it is left."""
    with Recorder(config, data_path, out, git) as recorder:
        recorder.judge(*train(config, out))
    return recorder.record


# %%
import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise
from course_lib.data import collate


def luck_to_text() -> dict[str, Any]:
    kind, keys, place, has_gauss, gauss = np.random.get_state()
    return {
        "python": json.dumps(random.getstate()),
        "numpy": json.dumps([kind, keys.tolist(), int(place), int(has_gauss), float(gauss)]),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def luck_from_text(luck: dict[str, Any]) -> None:
    version, internal, gauss_next = json.loads(luck["python"])
    random.setstate((version, tuple(internal), gauss_next))
    kind, keys, place, has_gauss, gauss = json.loads(luck["numpy"])
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), place, has_gauss, gauss))
    torch.set_rng_state(luck["torch"])
    if luck["cuda"]:
        torch.cuda.set_rng_state_all(luck["cuda"])


def plan(seed: int, number: int, skip: int = 0) -> Iterator[list[int]]:
    """The indices of step `skip`, `skip` + 1, ... without end."""

    def all_steps() -> Iterator[list[int]]:
        for epoch in itertools.count():
            order = list(range(number))
            random.Random(f"order of {seed}, epoch {epoch}").shuffle(order)
            rest = iter(order)
            while due := list(itertools.islice(rest, 4)):
                yield due

    return itertools.islice(all_steps(), skip, None)


@exercise("8.4")
class Run:
    """An endless generator of indices, made anew where a state left off; generator states as JSON."""

    def __init__(
        self,
        seed: int,
        make_model: Callable[[], torch.nn.Module],
        samples: Sequence[tuple[np.ndarray, int]],
    ) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.seed, self.samples, self.done = seed, samples, 0
        self.model = make_model()
        self.optimizer = torch.optim.AdamW([*self.model.parameters()], lr=0.01)
        self.plan = plan(seed, len(samples))
        self.luck = luck_to_text()

    def train(self, num_steps: int) -> None:
        self.model.train(True)
        luck_from_text(self.luck)
        try:
            for _ in range(num_steps):
                batch = collate([self.samples[index] for index in next(self.plan)])
                log_p = F.log_softmax(self.model(batch["input_ids"], batch["attention_mask"]), dim=-1)
                loss = F.nll_loss(log_p, batch["labels"])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.done += 1
        finally:
            self.luck = luck_to_text()

    def state_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "luck": copy.deepcopy(self.luck),
            "model": copy.deepcopy(self.model.state_dict()),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]
        self.luck = copy.deepcopy(state["luck"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        self.plan = plan(self.seed, len(self.samples), skip=self.done)


# %%
import numpy as np
from scipy import stats

from autograder import exercise


def lies(difference: np.ndarray, side: str, value: float) -> bool:
    """Does the whole 95 % interval of the mean lie on that side ("greater" or "less") of `value`?"""
    if np.ptp(difference) == 0:  # no width
        return bool(difference[0] > value if side == "greater" else difference[0] < value)
    return bool(stats.ttest_1samp(difference, value, alternative=side).pvalue < 0.025)


@exercise("8.5")
def did_it_help(baseline: np.ndarray, candidate: np.ndarray, margin: float) -> str:
    """One-sided tests at 2.5 % instead of an interval, which they are the dual of."""
    difference = np.subtract(candidate, baseline, dtype=np.float64)
    sentences = {
        "better": ("greater", 0.0),
        "no worse": ("greater", -margin),
        "worse": ("less", 0.0),
    }
    if difference.size >= 5:
        for sentence, (side, value) in sentences.items():
            if lies(difference, side, value):
                return sentence
    return "undecided"


# %%
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch

from autograder import exercise


def thue_morse(n: int) -> bool:
    """0110 1001 1001 0110 ...: places 2k and 2k + 1 always differ."""
    return n.bit_count() % 2 == 1


def timings(
    step: Callable[[], object], clock: Callable[[], float], number: int
) -> Iterator[tuple[bool, float]]:
    benchmark = torch.backends.cudnn.benchmark
    for place in range(number):
        is_on = thue_morse(place)
        torch.use_deterministic_algorithms(is_on)
        torch.backends.cudnn.benchmark = False if is_on else benchmark
        start = clock()
        step()
        yield is_on, clock() - start


@exercise("8.6")
def cost_of_determinism(step: Callable[[], object], clock: Callable[[], float]) -> dict[str, float]:
    """Turns after Thue and Morse; the estimate of Hodges and Lehmann, with Wilcoxon's interval."""
    warm_up, measured = 32, 640
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
    )
    try:
        found = list(timings(step, clock, warm_up + measured))[warm_up:]
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.backends.cudnn.benchmark = before[2]

    sides = np.array([is_on for is_on, _ in found]).reshape(-1, 2)
    logs = np.log([seconds for _, seconds in found]).reshape(-1, 2)
    pairs = np.where(sides[:, 0], logs[:, 0] - logs[:, 1], logs[:, 1] - logs[:, 0])
    # Two neighbours of opposite order make one value: what comes second is not favoured.
    first = sides[:, 0]
    values = (pairs[first] + pairs[~first]) / 2

    n = len(values)
    i, j = np.triu_indices(n)
    walsh = np.sort((values[i] + values[j]) / 2)
    skip = math.floor(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    return {
        "ratio": float(np.exp(np.median(walsh))),
        "low": float(np.exp(walsh[skip])),
        "high": float(np.exp(walsh[-1 - skip])),
    }
