"""Hyperparameter search over Optuna: a study in a folder, worked on by any number of processes.

What must not happen twice (choosing the next trial, counting budgets, taking over the trial of a dead process)
happens under a file lock in the study's folder. The locks are the system's own: `kill -9` frees them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import multiprocessing
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from course_lib.callbacks import Callback, TrainState
from course_lib.components import build_components
from course_lib.config import TrainConfig, differences
from course_lib.config_io import read_yaml, to_yaml
from course_lib.data.cache import digest
from course_lib.distributed import Ranks
from course_lib.environment import resolve_device
from course_lib.errors import UserError
from course_lib.files import atomic_write_text
from course_lib.loop import NonFiniteError
from course_lib.metrics import RunFolder
from course_lib.progress import say
from course_lib.run_data import load_data
from course_lib.search_space import Dimension, grid_points, make_space, with_values
from course_lib.train import run_training
from course_lib.tuning_report import write_study
from course_lib.tuning_study import make_sampler, open_study

NUM_RUNGS = 10
"""Validations of a trial that a pruner sees, unless `validate_every_steps` says otherwise."""
DEFAULT_TRIALS = 20
MAX_ATTEMPTS = 3
PRUNED = "pruned"
CHECKPOINT_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """What to search, how, and how much of it now. Plain values: worker processes get a copy.

    Raises UserError for a search that cannot be.
    """

    config: TrainConfig
    """What all trials share. Its steps are the budget of each trial, its `monitor` is what is compared."""
    out: Path
    texts: Mapping[str, Any]
    """The search space: key → `"log:1e-4..1e-2"`, `"float:0..0.3"`, `"int:1..4"`, `"choice:a,b"` or a list."""
    sampler: str = "tpe"
    """`"tpe"`, `"random"` or `"grid"`."""
    pruner: str = "median"
    """`"median"`, `"halving"` (successive halving) or `"none"`."""
    trials: int | None = None
    """All trials of the study count, pruned ones too, and so do their steps. No limit at all: 20, or the grid."""
    max_total_steps: int | None = None
    minutes: float | None = None
    """Counted from the start of this command; the trial at hand then stays open for the next one."""
    seeds: int = 1
    """Train the best configuration with so many seeds, to see how much of its value is chance."""
    jobs: int = 1
    storage: str | None = None
    """An Optuna storage URL (PostgreSQL, …) instead of a journal file in `out`."""
    name: str = ""
    deadline: float = math.inf

    def __post_init__(self) -> None:
        for name in ("trials", "max_total_steps", "minutes", "seeds", "jobs"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"{name} must be above 0, got {value}")
        assert self.space and self.max_trials  # read now, for their errors

    @cached_property
    def space(self) -> dict[str, Dimension]:
        return make_space(self.texts, self.config)

    @cached_property
    def max_trials(self) -> float:
        points = grid_points(self.space, self.config) if self.sampler == "grid" else []
        if not points and (self.trials, self.max_total_steps, self.minutes) == (None, None, None):
            return DEFAULT_TRIALS
        return min(self.trials or math.inf, len(points) or math.inf)

    def lock(self, name: str) -> FileLock:
        return FileLock(self.out / "locks" / name)


def tune(search: Search, *, progress: bool = True) -> dict[str, Any]:
    """Search, and write `study.json`, `tuning.html` and `best.yaml` into `search.out`; returns the first.

    Called again with the same search it goes on; called in several processes they share the work. Each trial is
    a `run_training` with a fresh model, the same seed and the same number of steps, in `trials/NNNN`; only the
    pruner ends it earlier. The trial of a killed process is continued by another one and counts once. Trials
    are compared on the validation texts; keep texts to judge the winner on elsewhere.

    Raises UserError when `out` holds another search, KeyboardInterrupt after writing what there is.
    """
    (search.out / "locks").mkdir(parents=True, exist_ok=True)
    with search.lock("setup"):  # of two commands started together, one tokenises and the other waits
        search = _enter(search, progress=progress)
    num_threads = torch.get_num_threads()
    share = max(1, num_threads // search.jobs)
    context = multiprocessing.get_context("spawn")  # a forked torch may hang in its thread pool
    helpers = [context.Process(target=_help, args=(search, share)) for _ in range(search.jobs - 1)]
    worker = _Worker(search, progress=progress)
    torch.set_num_threads(share)
    try:
        for helper in helpers:
            helper.start()
        worker.run()
        for helper in helpers:
            helper.join()
        worker.run()  # what a killed helper has left open
        worker.repeat_best()
    finally:
        for helper in filter(lambda helper: helper.is_alive(), helpers):
            helper.terminate()  # safe at any moment: the next command takes up an open trial
        torch.set_num_threads(num_threads)
        worker.bar.close()
        with search.lock("setup"):
            result = write_study(search, worker.study)
    return result


def _enter(search: Search, *, progress: bool) -> Search:
    """The search as its `study.yaml` has it: every `auto` settled once for all trials; and the clock started."""
    data = load_data(search.config, RunFolder(search.out), progress=progress)
    asked = search.config.to_dict() | {f"search {key}": part.text for key, part in search.space.items()}
    asked |= {"sampler": search.sampler, "pruner": search.pruner, "data fingerprint": data.fingerprint}
    # Hashed: the URL may hold a password.
    asked["storage"] = digest(search.storage)[:12] if search.storage else "journal"
    path = search.out / "study.yaml"
    if not path.exists():
        device, _ = resolve_device(search.config.device)
        parts = build_components(search.config, data, device, Ranks(), settled=None)
        every = search.config.validate_every_steps or max(1, parts.max_steps // NUM_RUNGS)
        settled = parts.settled.to_dict() | {"max_steps": parts.max_steps, "validate_every_steps": every}
        name = f"{search.out.name}-{secrets.token_hex(4)}"
        made = {"name": name, "search": asked, "config": settled | {"max_epochs": None}}
        atomic_write_text(path, to_yaml(made))
    known = read_yaml(path)
    if changed := differences(known["search"], asked):
        raise UserError(
            f"{search.out} holds another search ({'; '.join(changed)}): "
            "repeat its options to continue it, or choose another --out"
        )
    deadline = time.time() + 60 * (search.minutes or math.inf)
    config = TrainConfig(**known["config"])
    return dataclasses.replace(search, config=config, name=known["name"], deadline=deadline)


def _help(search: Search, num_threads: int) -> None:
    """What a helping process does."""
    torch.set_num_threads(num_threads)
    try:
        _Worker(search, progress=False).run()
    except KeyboardInterrupt:
        pass
    except Exception as error:  # the main process goes on, and meets the same fault if it lasts
        say(f"a worker process stopped: {(str(error).splitlines() or [type(error).__name__])[0]}")


class _OutOfTime(KeyboardInterrupt):
    """Leaves a run as ctrl-C does: it can be resumed."""


class _Worker:
    """Takes trials and runs them, one at a time."""

    def __init__(self, search: Search, *, progress: bool) -> None:
        from tqdm import tqdm

        self.search, self.study = search, open_study(search)
        total = search.max_trials if search.max_trials < math.inf else None
        self.bar = tqdm(total=total, desc="Tuning", unit="trial", disable=not progress)

    def run(self) -> None:
        """Until nothing is left to do, or time is up."""
        with contextlib.suppress(_OutOfTime):
            while (taken := self._take()) is not None:
                trial, claim = taken
                with claim:
                    self._try(trial)
                self.show()
        self.show()

    def _take(self) -> tuple[Any, FileLock] | None:
        """A trial that a dead process left open, else a new one if the budgets have room; and its lock."""
        import optuna

        with self.search.lock("study"):
            trials = self.study.get_trials(deepcopy=False)
            if time.time() >= self.search.deadline:
                return None
            for left in trials:
                if not left.state.is_finished() and (claim := self._claim(left.number)):
                    self.study.sampler = make_sampler(self.search, left.number)
                    return optuna.Trial(self.study, left._trial_id), claim
            if not self._has_room(trials):
                return None
            self.study.sampler = make_sampler(self.search, len(trials))
            trial = self.study.ask()
            claim = self._claim(trial.number)
            assert claim is not None
            return trial, claim

    def _has_room(self, trials: list[Any]) -> bool:
        """For a whole trial more, when every open one runs to its end and the repeats with other seeds come."""
        each = self.search.config.max_steps or 0
        spent = sum(trial.user_attrs["spent"][0] if trial.state.is_finished() else each for trial in trials)
        room = (self.search.max_total_steps or math.inf) - spent - each * (self.search.seeds - 1)
        return len(trials) < self.search.max_trials and each <= room

    def _claim(self, run: object) -> FileLock | None:
        """The lock of a run, None while a living process holds it."""
        lock = self.search.lock(f"run-{run}")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock

    def _try(self, trial: Any) -> None:
        from optuna.trial import TrialState

        # What `ask(distributions)` calls; a value that the trial has already stays.
        values = {key: trial._suggest(key, part.distribution) for key, part in self.search.space.items()}
        attempts = trial.user_attrs.get("attempts", 0)
        trial.set_user_attr("attempts", attempts + 1)
        reporter = _Reporter(self, trial)
        result = failure = None
        try:
            if attempts >= MAX_ATTEMPTS:
                raise UserError(f"the process died in each of {attempts} attempts")
            config = with_values(self.search.config, values)
        except UserError as error:  # of values that are good one by one, and not together
            failure = str(error)
        try:
            if failure is None:
                record = self._train(config, f"{trial.number:04d}", reporter)
                result = None if record["stop_reason"].startswith(PRUNED) else record["best"]["value"]
        except (NonFiniteError, torch.OutOfMemoryError) as error:
            failure = str(error).splitlines()[0]
        except BaseException:  # no fault of the trial's
            trial.set_user_attr("attempts", attempts)
            raise
        finally:
            reporter.save()
        trial.set_user_attr("failure", failure)
        # A failed trial counts as pruned: a sampler ignores failures, and would go there again.
        self.study.tell(trial, result, TrialState.PRUNED if result is None else None)

    def _train(self, config: TrainConfig, name: str, *callbacks: Callback) -> dict[str, Any]:
        folder = RunFolder(self.search.out / "trials" / name)
        seconds = config.checkpoint_every_seconds or CHECKPOINT_SECONDS
        config = dataclasses.replace(config, checkpoint_every_seconds=seconds)
        is_begun = folder.config.exists()
        record = run_training(config, folder.directory, resume=is_begun, progress=False, callbacks=callbacks)
        folder.last.unlink(missing_ok=True)  # most of the disk space, and finished runs do not need it
        return record

    def repeat_best(self) -> None:
        """The best configuration with other seeds, when all trials are over."""
        states = {trial.state.name for trial in self.study.get_trials(deepcopy=False)}
        if "RUNNING" in states or "COMPLETE" not in states:
            return
        best, seed = self.study.best_trial, self.search.config.seed
        for other in range(seed + 1, seed + self.search.seeds):
            name = f"{best.number:04d}-seed{other}"
            if (claim := self._claim(name)) and time.time() < self.search.deadline:
                with claim, contextlib.suppress(NonFiniteError):
                    self._train(with_values(self.search.config, {**best.params, "seed": other}), name)

    def show(self) -> None:
        """The bar: trials that are over, whoever ran them, and the best value so far."""
        with contextlib.suppress(ValueError):  # no trial is complete yet
            best = self.study.best_trial
            text = f"best {self.search.config.monitor} {best.value:.4g} (trial {best.number})"
            self.bar.set_postfix_str(text, refresh=False)
        self.bar.n = sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))
        self.bar.refresh()


class _Reporter(Callback):
    """Counts what a trial uses, tells Optuna its values, and ends it when the pruner or the clock says so."""

    def __init__(self, worker: _Worker, trial: Any) -> None:
        self.worker, self.trial = worker, trial
        self.steps, self.seconds = trial.user_attrs.get("spent", (0, 0.0))  # by a process that died
        self.started = time.perf_counter()
        self.reported = set(worker.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

    def save(self) -> None:
        self.trial.set_user_attr("spent", [self.steps, self.seconds + time.perf_counter() - self.started])

    def on_step(self, state: TrainState) -> None:
        self.steps += 1
        if time.time() >= self.worker.search.deadline:
            raise _OutOfTime

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] != "validation":
            return
        parent = multiprocessing.parent_process()
        if parent and not parent.is_alive():  # killed: its helpers must not go on unseen
            raise KeyboardInterrupt
        self.save()
        config = self.worker.search.config
        assert config.validate_every_steps and config.max_steps
        rung, rest = divmod(state.step, config.validate_every_steps)
        if rest == 0 and rung not in self.reported:
            self.trial.report(record[config.monitor], rung)
            if state.step < config.max_steps and self.trial.should_prune():
                state.stop(f"{PRUNED} at step {state.step}: behind the other trials")
