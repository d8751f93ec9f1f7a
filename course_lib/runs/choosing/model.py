"""`model=auto`: the kinds of model that the time has room for are trained on trial, and the best is taken."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from course_lib.base import say
from course_lib.distributed import Ranks, from_main_process, main_process_first, wrap_ddp
from course_lib.measuring import synchronize
from course_lib.runs.checks import AUTO, MODELS
from course_lib.runs.components import auto_length, build_components, build_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.data import RunData, load_data
from course_lib.runs.folder import RunFolder
from course_lib.training import (
    Callback,
    NonFiniteError,
    TrainState,
    fit,
    make_optimizer,
    resolve_epochs,
    seed_everything,
    to_device,
    train_step,
)

FIRST = "ngrams"
"""What is taken where there is no time to compare: the best on Banking77, CLINC150 and SMS spam in the time that
n-grams need (`tests/benchmarks/tables.py`)."""
DEFAULT_LIMIT = 4
"""Times what n-grams are expected to need: on a CPU seldom enough for another model, and never long."""
NGRAMS_PER_TOKEN = 12
"""About: for the expected width of a row of tokens, before a tokenizer is trained."""
_STEPS = 3


@dataclass
class Choice:
    """The config with its model settled, the data of that model, why, and what was tried.

    `trials`: for each model `model`, `expected_seconds`, and for those that were trained `seconds`, `value` (of the
    monitored metric, the best validation) and `is_whole` (whether the time sufficed).
    """

    config: TrainConfig
    data: RunData
    reason: str
    trials: list[dict[str, Any]] = field(default_factory=list)


def choose_model(
    config: TrainConfig,
    folder: RunFolder,
    device: torch.device,
    ranks: Ranks,
    *,
    progress: bool = True,
    frames: Mapping[str, Any] | None = None,
) -> Choice:
    """The model of `config`, or with `auto` the best by `config.metric` on the validation part.

    With `auto`, each model is expected to train as long as its steps on a few batches say. Whole runs are tried,
    n-grams first and then from the quickest to the slowest, as long as they fit into `config.time_limit` together;
    where it has no room for two, n-grams are taken untried. All processes of a run call this. Errors are those of
    `load_data`.
    """

    def load(config: TrainConfig) -> RunData:
        with main_process_first(ranks):
            is_told = progress and ranks.is_main_process
            return load_data(config, folder, progress=is_told, frames=frames)

    if config.init_from and config.model == AUTO:
        theirs = RunFolder(config.init_from).read_config()["model"]
        config = dataclasses.replace(config, model=theirs)
        return Choice(config, load(config), f"{theirs}: that of init_from")
    if config.model != AUTO:
        return Choice(config, load(config), f"{config.model}: asked for")
    configs = {model: dataclasses.replace(config, model=model) for model in MODELS}
    data = {"ngrams": load(configs["ngrams"])}
    expected = {
        model: from_main_process(expected_seconds(configs[model], data["ngrams"], device))
        for model in ("ngrams", "transformer")
    }
    expected["joined"] = sum(expected.values())
    limit = DEFAULT_LIMIT * expected[FIRST] if config.time_limit is None else config.time_limit
    order = sorted(MODELS, key=lambda model: (model != FIRST, expected[model]))
    tried = [
        model for n, model in enumerate(order) if sum(map(expected.__getitem__, order[: n + 1])) <= limit
    ]
    trials: list[dict[str, Any]] = [{"model": model, "expected_seconds": expected[model]} for model in order]
    if len(tried) < 2:
        return Choice(configs[FIRST], data[FIRST], _why_untried(expected, order, limit, config), trials)
    deadline = time.monotonic() + limit
    for trial in trials[: len(tried)]:
        model = str(trial["model"])
        say(f"model=auto: trying {model}, about {expected[model]:.0f} s", enabled=progress)
        data[model] = data.get(model) or load(configs[model])
        try:
            trial |= _try(configs[model], data[model], device, ranks, deadline)
        except NonFiniteError as error:
            trial["failure"] = str(error)
    sign = 1 if config.higher_is_better else -1
    judged = [trial for trial in trials if trial.get("value") is not None]
    best = max(judged or trials[:1], key=lambda trial: sign * (trial.get("value") or 0.0))
    chosen = str(best["model"])
    return Choice(configs[chosen], data[chosen], _why(best, trials, limit, config), trials)


class _Deadline(Callback):
    """Ends a trial when the time is up; all processes at the same step."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def on_safe_point(self, state: TrainState) -> None:
        if from_main_process(time.monotonic() > self.deadline):
            state.stop("time_limit is up")


def _try(
    config: TrainConfig, data: RunData, device: torch.device, ranks: Ranks, deadline: float
) -> dict[str, Any]:
    """Train as the run would, and write nothing."""
    start = time.monotonic()
    seed_everything(config.seed, deterministic=config.is_deterministic)
    parts = build_components(config, data, device, ranks, settled=None)
    state = TrainState()
    records = fit(
        wrap_ddp(parts.model),
        parts.batches,
        parts.optimizer,
        **parts.of_fit(config),
        callbacks=[_Deadline(deadline)],
        state=state,
    )
    values = [record[config.metric] for record in records if record["kind"] == "validation"]
    values = [value for value in values if value == value]
    best = (max if config.higher_is_better else min)(values) if values else None
    seconds = from_main_process(time.monotonic() - start)
    return {"seconds": seconds, "value": best, "is_whole": not state.stop_reason}


def expected_seconds(config: TrainConfig, ngrams: RunData, device: torch.device) -> float:
    """How long a model would train, validations left out: the time of a step on rows of random ids, as long as the
    texts are on average, times the number of steps. No tokenizer is trained for that."""
    train = ngrams.train
    num_ngrams, num_classes = train.vocab_size, len(train.label_names)
    size = min(int(config.micro_batch_size or 1) if config.micro_batch_size != AUTO else 32, len(train))
    bag = max(1, round(float(train.lengths.mean())))
    tokens = min(config.max_length, 1 + bag // NGRAMS_PER_TOKEN)
    widths = {"ngrams": (0, bag), "joined": (tokens, bag), "transformer": (tokens, 0)}[config.model]
    offset = 0 if config.model == "ngrams" else config.vocab_size
    vocab_size = offset + (0 if config.model == "transformer" else num_ngrams)
    generator = torch.Generator().manual_seed(0)  # its own: the run's random numbers stay as they were
    ids = [
        torch.randint(1, max(2, min(config.vocab_size, 1000)), (size, widths[0]), generator=generator),
        torch.randint(offset + 1, max(offset + 2, vocab_size), (size, widths[1]), generator=generator),
    ]
    input_ids = torch.cat(ids, dim=1)
    labels = torch.randint(0, num_classes, (size,), generator=generator)
    batch = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids, dtype=torch.bool)}
    model = build_model(config, vocab_size=vocab_size, num_classes=num_classes).to(device)
    name = "adamw" if config.optimizer == AUTO else config.optimizer  # muon takes seconds to be loaded
    optimizer = make_optimizer(model, name, learning_rate=1e-9)
    batch = to_device({**batch, "labels": labels}, device)
    seconds = []
    for _ in range(_STEPS):
        synchronize()
        start = time.perf_counter()
        train_step(model, batch, optimizer)
        synchronize()
        seconds.append(time.perf_counter() - start)
    steps_per_epoch = -(-len(train) // size)
    epochs, _ = resolve_epochs(
        steps_per_epoch,
        max_epochs=config.max_epochs,
        max_steps=config.max_steps,
        **auto_length(config.model, steps_per_epoch),
    )
    num_steps = min(epochs * steps_per_epoch, config.max_steps or epochs * steps_per_epoch)
    return float(np.min(seconds[1:])) * num_steps


def _why_untried(expected: Mapping[str, float], order: list[str], limit: float, config: TrainConfig) -> str:
    others = " and ".join(f"{model} ({expected[model]:.1f} s)" for model in order[1:])
    asked = "the default time_limit" if config.time_limit is None else "time_limit"
    return (
        f"auto: {FIRST}, untried, expected to train in {expected[FIRST]:.1f} s; {asked} of {limit:.1f} s has no room "
        f"to compare with {others}; time_limit={sum(expected.values()):.0f} would have"
    )


def _why(best: Mapping[str, Any], trials: list[dict[str, Any]], limit: float, config: TrainConfig) -> str:
    told = []
    for trial in trials:
        if trial.get("value") is not None:
            cut = "" if trial["is_whole"] else ", cut by the time"
            told.append(f"{trial['model']} {trial['value']:.4f} ({trial['seconds']:.1f} s{cut})")
        elif "failure" in trial:
            told.append(f"{trial['model']} failed")
        elif "seconds" not in trial:
            told.append(f"{trial['model']} not tried (about {trial['expected_seconds']:.1f} s)")
        else:
            told.append(f"{trial['model']} not validated in time")
    return (
        f"auto: {best['model']}, best validation {config.metric} of the trials in time_limit={limit:.0f} s: "
        + ", ".join(told)
    )
