"""Hyperparameter search over Optuna: a study in a folder, worked on by any number of processes.

What must not happen twice (choosing the next trial, counting budgets, taking over the trial of a dead process)
happens under a file lock in the study's folder. The locks are the system's own: `kill -9` frees them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from typing import Any

from course_lib.base import UserError, require, resolve_device, say
from course_lib.distributed import Ranks
from course_lib.runs import (
    AUTO,
    RunFolder,
    TrainConfig,
    build_components,
    check_same_config,
    load_data,
    run_training,
)
from course_lib.training import Callback, NonFiniteError, TrainState
from course_lib.tuning.report import write_study
from course_lib.tuning.search import Search

NUM_RUNGS = 10
"""Validations of a trial that a pruner sees, unless `validate_every_steps` says otherwise."""
WARMUP_RUNGS = 2
"""No trial is pruned before: while the learning rate rises, a trial says little about its end."""
PRUNED = "pruned"


def tune(search: Search, *, progress: bool = True) -> dict[str, Any]:
    """Search, and write `study.json`, `tuning.html` and `best.yaml` into `search.out`; returns the first.

    Called again with the same search it goes on; called in several processes they share the work. Each trial is
    a `run_training` with a fresh model, the same seed and the same number of steps, in `trials/NNNN`; only the
    pruner ends it earlier. The trial of a killed process is continued by another one and counts once. Trials
    are compared on the validation texts; keep texts to judge the winner on elsewhere.

    Raises UserError when `out` holds another search, KeyboardInterrupt after writing what there is.
    """
    if Ranks.from_environment().world_size > 1:  # they would train one model with the values of two trials
        raise UserError("each process of a search works alone: start `course-lib tune` in several shells")
    (search.out / "locks").mkdir(parents=True, exist_ok=True)
    with search.lock("setup"):  # of two commands started together, one tokenises and the other waits
        search = _settle(search, progress=progress)
    study, deadline = open_study(search), time.time() + 60 * (search.minutes or math.inf)
    try:
        while time.time() < deadline and (taken := _take(search, study)):
            trial, claim = taken
            with claim:
                told = _run_trial(search, study, trial)
            say(f"trial {trial.number}: {told}", enabled=progress)
    finally:
        with search.lock("setup"):
            result = write_study(search, study)
    return result


def open_study(search: Search) -> Any:
    """The Optuna study in the search's folder, created when it is not there yet."""
    optuna = require("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warmup = WARMUP_RUNGS * (search.config.validate_every_steps or 1)
    pruners = {
        "median": optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=warmup),
        "halving": optuna.pruners.SuccessiveHalvingPruner(min_resource=warmup, reduction_factor=3),
        "none": optuna.pruners.NopPruner(),
    }
    # Optuna's own lock would stay for 30 s when its holder is killed.
    backend = optuna.storages.journal.JournalFileBackend(str(search.out / "journal"), search.lock("journal"))
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name="study",
        direction="maximize" if search.config.higher_is_better else "minimize",
        pruner=pruners[search.pruner],
        load_if_exists=True,
    )


def make_sampler(search: Search, number: int) -> Any:
    """The sampler of one trial. Its seed comes from the trial's number: an interrupted study goes on as if
    nothing had happened, and no two processes draw the same."""
    optuna = require("optuna", extra="tune")
    if search.sampler == "grid":
        sampler = optuna.samplers.GridSampler(search.grid, seed=search.config.seed)
        sampler.after_trial = lambda *_: None  # it would stop `Study.optimize`
        return sampler
    seed = hash((search.config.seed, number)) % 2**32  # of whole numbers: the same in every process
    kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    return kinds[search.sampler](seed=seed)


def _settle(search: Search, *, progress: bool) -> Search:
    """The search with the config of its study: every `auto` was settled once for all trials."""
    if (
        search.config.model == AUTO
    ):  # trials of several kinds would not compare: what is searched is a transformer
        search = dataclasses.replace(search, config=dataclasses.replace(search.config, model="transformer"))
    data = load_data(search.config, RunFolder(search.out), progress=progress)
    asked = search.config.to_dict() | {f"search {key}": str(text) for key, text in search.texts.items()}
    asked |= {"sampler": search.sampler, "pruner": search.pruner, "data fingerprint": data.fingerprint}
    study = open_study(search)
    if not study.user_attrs:
        device = resolve_device(search.config.device)[0]
        parts = build_components(search.config, data, device, Ranks(), settled=None)
        every = search.config.validate_every_steps or max(1, parts.max_steps // NUM_RUNGS)
        equal = {"max_steps": parts.max_steps, "max_epochs": None, "validate_every_steps": every}
        study.set_user_attr("search", {"asked": asked, "config": parts.settled.to_dict() | equal})
    known = study.user_attrs["search"]
    check_same_config(known["asked"], asked, owner=f"the search in {search.out}")
    return dataclasses.replace(search, config=TrainConfig(**{"model": "transformer", **known["config"]}))


def _take(search: Search, study: Any) -> Any:
    """A trial that a dead process left open, else a new one if the budgets have room; and its lock, which no
    living process holds. None when there is nothing to do."""
    from filelock import Timeout

    optuna = require("optuna", extra="tune")
    with search.lock("study"):
        trials = study.get_trials(deepcopy=False)
        each = search.config.max_steps or 0  # an open trial may need them all
        spent = sum((trial.last_step or 0) if trial.state.is_finished() else each for trial in trials)
        numbers = [trial.number for trial in trials if not trial.state.is_finished()]
        if len(trials) < search.max_trials and spent + each <= (search.max_total_steps or math.inf):
            numbers.append(len(trials))
        for number in numbers:
            with contextlib.suppress(Timeout):
                claim = search.lock(f"trial-{number:04d}").acquire(blocking=False)
                study.sampler = make_sampler(search, number)
                is_new = number == len(trials)
                return study.ask() if is_new else optuna.Trial(study, trials[number]._trial_id), claim
    return None


def _run_trial(search: Search, study: Any, trial: Any) -> str:
    """Train, tell Optuna, and return what came out in words."""
    optuna = require("optuna", extra="tune")
    # What `ask(distributions)` calls; a value that the trial has already stays.
    values = {key: trial._suggest(key, distribution) for key, distribution in search.space.items()}
    folder = RunFolder(search.out / "trials" / f"{trial.number:04d}")
    is_begun, callbacks = folder.config.exists(), [_Reporter(search.config, study, trial)]
    try:
        config = dataclasses.replace(search.config, **values)  # good one by one, but together?
        record = run_training(config, folder.directory, resume=is_begun, progress=False, callbacks=callbacks)
    except (UserError, NonFiniteError, MemoryError, RuntimeError) as error:  # the last: out of memory, mostly
        failure = (str(error) or type(error).__name__).splitlines()[0]
        trial.set_user_attr("failure", failure)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return f"failed: {failure}"
    folder.last.unlink(missing_ok=True)  # most of the disk space, and finished runs do not need it
    if record["stop_reason"].startswith(PRUNED):
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        return str(record["stop_reason"])
    study.tell(trial, record["best"]["value"])
    return f"{search.config.monitor} {record['best']['value']:.4g}"


class _Reporter(Callback):
    """Tells Optuna a trial's values and time, and ends it when the pruner says so."""

    def __init__(self, config: TrainConfig, study: Any, trial: Any) -> None:
        self.config, self.trial = config, trial
        # Of a process that died:
        self.last_step = study.get_trials(deepcopy=False)[trial.number].last_step or 0
        self.started = time.perf_counter() - trial.user_attrs.get("seconds", 0.0)

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] != "validation" or state.step <= self.last_step:
            return
        self.trial.set_user_attr("seconds", time.perf_counter() - self.started)
        self.trial.report(record[self.config.metric], state.step)
        if state.step < (self.config.max_steps or 0) and self.trial.should_prune():
            state.stop(f"{PRUNED} at step {state.step}: behind the other trials")
