"""Harness of 4.1: a small run that reads every kind of state, saved in one process and resumed in another."""

from __future__ import annotations

import contextlib
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import as_it_is, generators, learner, small_model, switches
from autograder.lessons.lesson_04.harness.broken import broken_ones_taken, ends_of_records, ones_that_lack
from course_lib.data import collate

FP16_MAX = 65504.0


class _Order:
    """Batches of indices in an order that is new each epoch, and the place in it. Its state is nested."""

    def __init__(self, size: int, rows: int, seed: int) -> None:
        self._size, self._rows, self._seed = size, rows, seed
        self._labels = {
            "kind": "shuffled\n",
            "most": None,
            "is_whole": True,
            "seed": 2**40 + seed,
            "share": 0.1,
        }
        self._start(0)

    def _start(self, epoch: int) -> None:
        order = np.random.default_rng([self._seed, epoch]).permutation(self._size)
        self._epoch, self._order, self._taken = epoch, torch.from_numpy(order), [0, 0.0]

    def next_batch(self) -> list[int]:
        start = int(self._taken[0])
        self._taken = [start + self._rows, (start + self._rows) / self._size]
        batch = self._order[start : start + self._rows].tolist()
        if self._taken[0] >= self._size:
            self._start(self._epoch + 1)
        return [int(index) for index in batch]

    def state_dict(self) -> dict[str, Any]:
        place = {"taken": self._taken, "order": self._order, "labels": self._labels}
        return {"epoch": self._epoch, "place": place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._epoch, self._order = int(state["epoch"]), state["place"]["order"].clone()
        self._taken, self._labels = list(state["place"]["taken"]), dict(state["place"]["labels"])

    def where(self) -> list[float]:
        return [float(self._epoch), *map(float, self._taken), *map(float, self._order)]


class _Model(torch.nn.Module):
    """A classifier, and buffers that its next step reads: a cast to 32 bits would round them."""

    num_seen: torch.Tensor
    heat: torch.Tensor

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.classifier = small_model(seed, dropout=0.2)
        self.register_buffer("num_seen", torch.tensor(2**24 + 1 + seed % 997))
        self.register_buffer("heat", torch.tensor(1.0 + (seed % 991) / 3e3, dtype=torch.float64))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.num_seen += len(input_ids)
            self.heat *= 1.0 + 1.0 / 3e3
        scale = (self.heat * (1.0 + 1e-9 * self.num_seen)).float()
        logits: torch.Tensor = self.classifier(input_ids, attention_mask) * scale
        return logits


class SmallRun:
    """A run whose next step depends on weights, moments, schedule, scale, place, and three random generators."""

    def __init__(self, data_seed: int, own_seed: int) -> None:
        rng = np.random.default_rng(data_seed)
        self.samples = [
            (rng.integers(3, 60, size=rng.integers(4, 20)), int(rng.integers(5))) for _ in range(44)
        ]
        self.model = _Model(own_seed)
        weights = list(self.model.parameters())
        groups: list[dict[str, Any]] = [
            {"params": weights[::2]},
            {"params": weights[1::2], "lr": 1e-3, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: (1 + step) ** -0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=3)
        self.sampler = _Order(len(self.samples), 8, data_seed % 1000)
        random.seed(own_seed)
        np.random.seed(own_seed % 2**32)
        torch.manual_seed(own_seed)

    def parts(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "scaler", "sampler")
        return {name: getattr(self, name) for name in names}

    def train(self, num_steps: int) -> list[float]:
        return [self._step() for _ in range(num_steps)]

    def _step(self) -> float:
        rows = []
        for index in self.sampler.next_batch():
            ids, label = self.samples[index]
            ids = np.where(np.random.random(len(ids)) < 0.15, 2, ids)  # words masked, by NumPy's generator
            rows.append((ids[::-1].copy() if random.random() < 0.5 else ids, label))  # by Python's
        batch = collate(rows)
        loss = F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        # A normal number each: both generators make two at a time, and keep one for the next step.
        loss = loss * float(np.exp(0.1 * random.gauss(0.0, 1.0) + 0.1 * np.random.standard_normal()))
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        for parameter in self.model.parameters():  # what fp16 could not hold, as a GPU would see it
            if parameter.grad is not None:
                parameter.grad[parameter.grad.abs() > FP16_MAX] = float("inf")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        for group in self.optimizer.param_groups:
            group["weight_decay"] *= 1.01  # a plan of the loop's own, which no scheduler knows
        return float(loss.detach())

    def _schedule(self) -> list[float]:
        plan = self.scheduler
        return [
            float(number)
            for number in (plan.last_epoch, plan._step_count, *plan.base_lrs, *plan.get_last_lr())
        ]

    def facts(self) -> dict[str, Any]:
        """Where the run is, in numbers that can be compared to the bit. Draws from no generator."""
        states = [self.optimizer.state.get(p, {}) for p in self.model.parameters()]
        moments = [state.get(name) for state in states for name in ("exp_avg", "exp_avg_sq", "step")]
        gradients = [p.grad.flatten() for p in self.model.parameters() if p.grad is not None]
        wide = [value.detach().double().flatten() for value in self.model.state_dict().values()]
        groups = [[group["lr"], group["weight_decay"]] for group in self.optimizer.param_groups]
        return {
            "weights": torch.cat([p.detach().flatten() for p in self.model.parameters()]),
            "model": torch.cat(wide),
            "moments": torch.cat([torch.zeros(1) if m is None else m.detach().flatten() for m in moments]),
            "groups": np.array(groups, dtype=np.float64),
            "schedule": self._schedule(),
            "scale": [float(self.scaler.get_scale()), float(self.scaler._get_growth_tracker())],
            "place": self.sampler.where(),
            "told": [float(zlib.crc32(repr(as_it_is(self.sampler.state_dict())).encode()))],
            "gradients": torch.cat(gradients) if gradients else torch.zeros(0),
            "modes": [module.training for module in self.model.modules()],
        }


def _draws() -> dict[str, float]:
    """The next numbers of each generator: plain ones, then normal ones, of which it may have one at hand."""
    return {
        "python": random.random(),
        "numpy": float(np.random.random()),
        "torch": float(torch.rand((), dtype=torch.float64)),
        "python_normal": random.gauss(0.0, 1.0),
        "numpy_normal": float(np.random.standard_normal()),
    }


@contextlib.contextmanager
def _as_they_were() -> Any:
    """The generators afterwards as before, cached normal numbers too."""
    python, numbers, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(python)
    np.random.set_state(numbers)
    torch.set_rng_state(torch_state)


def straight(seed: int, stops: list[int]) -> dict[str, Any]:
    """The run without any checkpoint, and where it is after so many steps; the stops come in order."""
    run, moments = SmallRun(seed, seed), []
    losses: list[float] = []
    for stop in stops:
        losses += run.train(stop - len(losses))
        with _as_they_were():
            moments.append({**run.facts(), "draws": _draws()})
    return {"losses": losses, "moments": moments}


def _going_on(run: SmallRun, num_steps: int) -> dict[str, Any]:
    """So many steps more: the losses, where it ends, and what went wrong in them."""
    try:
        losses = run.train(num_steps)
        with _as_they_were():
            return {"losses": losses, "error": "", **run.facts(), "draws": _draws()}
    except Exception as error:
        error_text = f"{type(error).__name__}: {error}"[:200]
        return {"losses": [], "error": error_text, **run.facts(), "draws": {}}


def save_and_go_on(
    seed: int, stops: list[int], steps: list[int], names: list[str], num_after: int
) -> dict[str, Any]:
    """The same run, saved at each stop by the learner's class: the files, and where the run is after each.

    A file of no meaning has the name before. At the second stop the run has just been validated, at the third a part of
    the model stands still. At the end two saves that must fail, into a folder that is not there and over one: "lost"
    says which did not, "left" what they changed; and "back" is where the run is when the last file and the first are
    loaded again, "trouble" the error that this ends with. The "others" are files in the folder that are no longer what
    they were.
    """
    other, run, folder = SmallRun(seed + 1, seed + 1), SmallRun(seed, seed), Path("checkpoints")
    keeper = learner(**run.parts())
    learner(**other.parts())  # another run in the same process
    folder.mkdir()
    for name in (*names, *_BESIDE):
        (folder / name).write_bytes(b"no checkpoint " * 30_000)
    files: list[bytes] = []
    before = switches()
    set_as: dict[str, str] = {}
    after: list[dict[str, Any]] = []
    losses: list[float] = []
    for number, (stop, step, name) in enumerate(zip(stops, steps, names, strict=True)):
        reached = _going_on(run, stop - len(losses))
        losses += reached["losses"]
        if reached["error"]:
            break
        _set_modes(run.model, number)
        modes = [module.training for module in run.model.modules()]
        keeper.save(folder / name, step)
        files.append((folder / name).read_bytes() if (folder / name).is_file() else b"")
        with _as_they_were():
            after.append({**run.facts(), "draws": _draws(), "modes_before": modes})
        set_as |= switches()
        run.model.train()
    beside = sorted({path.name for path in folder.iterdir()} - {*names, *_BESIDE})
    others = [
        name
        for name in _BESIDE
        if not (folder / name).is_file() or (folder / name).read_bytes() != b"no checkpoint " * 30_000
    ]
    end = reached if reached["error"] else _going_on(run, num_after)
    lost, left = _save_in_vain(run, keeper, folder, steps[-1])
    back: list[dict[str, Any]] = []
    trouble = ""
    for name in () if reached["error"] or not all(files) else (names[-1], names[0]):
        try:
            step = keeper.load(folder / name)
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"[:200]
            break
        back.append({"step": step if type(step) is int else -1, **run.facts(), "draws": _draws()})
    return {
        "others": others,
        "left": left,
        "back": back,
        "trouble": trouble,
        "switches": [before, {**before, **set_as}],
        "lost": lost,
        "files": [np.frombuffer(file, np.uint8) for file in files],
        "cuts": [ends_of_records(file) for file in files],
        "beside": beside,
        "after": after,
        "end": {**end, "losses": losses + end["losses"]},
    }


_BESIDE = ("another run", "last.pt.json")  # what is no file of ours


def _set_modes(model: Any, number: int) -> None:
    """All in training; or in evaluation, as after a validation; or one part alone, as where it is frozen."""
    model.train(number != 1)
    if number > 1:
        [*model.modules()][-number].eval()


def _save_in_vain(run: SmallRun, keeper: Any, folder: Path, step: int) -> tuple[list[str], list[str]]:
    """Where nothing can be saved: the places where no error says so, and what is another then."""
    lost, left = [], []
    nowhere = Path("no folder") / "last.pt"
    for name, path in (("in a folder that is missing", nowhere), ("over a folder", folder)):
        before = {"generators": generators(), "modes": [module.training for module in run.model.modules()]}
        try:
            keeper.save(path, step)
            lost += [] if path.is_file() else [name]
        except Exception:
            after = {"generators": generators(), "modes": [module.training for module in run.model.modules()]}
            left += [what for what in before if before[what] != after[what]]
    return lost, left


_resumed: dict[str, Any] = {}


def resume(
    seed: int, own_seed: int, file: np.ndarray, num_after: int, cuts: list[int], is_thinned: bool
) -> dict[str, Any]:
    """In another process, whose first run has other random weights and seeds: the file, and so many steps more.

    The next file is loaded into the same run, wherever it stands by then. `cuts`: where the file is cut off, too.
    `is_thinned`: and what lacks one of its entries is loaded.
    """
    if not _resumed:
        run = SmallRun(seed, own_seed)
        _resumed.update(run=run, keeper=learner(**run.parts()))
        learner(**SmallRun(seed + 1, own_seed + 1).parts())
    run, keeper, path = _resumed["run"], _resumed["keeper"], Path("resumed.pt")
    path.write_bytes(file.tobytes())
    _set_modes(run.model, 3)
    modes, before = [module.training for module in run.model.modules()], switches()
    step = keeper.load(path)
    set_as = switches()
    loaded = {
        "step": step if type(step) is int else -1,
        **run.facts(),
        "draws": _draws(),
        "modes_before": modes,
    }
    keeper.load(path)  # as it was before the numbers were drawn
    run.model.train()
    end = _going_on(run, num_after)
    lacking = _lacking_ones_taken(run, keeper, path, loaded) if is_thinned else []
    return {
        "loaded": loaded,
        "end": end,
        "switches": [before, set_as],
        "taken": lacking + broken_ones_taken(keeper, SmallRun(0, 0).parts(), file, cuts),
    }


def _lacking_ones_taken(run: SmallRun, keeper: Any, path: Path, whole: dict[str, Any]) -> list[str]:
    """Without which entry of the file a load goes well, and the run is another one."""
    taken, content = [], path.read_bytes()
    asked = {
        name: as_it_is(whole[name]) for name in whole if name not in ("modes", "modes_before", "gradients")
    }
    for name, thinned in ones_that_lack(content).items():
        path.write_bytes(content)
        keeper.load(path)
        run.model.train()
        run.train(2)
        path.write_bytes(thinned)
        with contextlib.suppress(Exception):
            step = keeper.load(path)
            found = {"step": step, **run.facts(), "draws": _draws()}
            taken += [f"a file without {name}"] if any(as_it_is(found[n]) != asked[n] for n in asked) else []
    path.write_bytes(content)
    return taken
