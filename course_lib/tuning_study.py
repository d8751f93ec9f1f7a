"""Optuna's side of a search: where the study is stored, who prunes, who proposes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from course_lib.errors import UserError

if TYPE_CHECKING:
    from course_lib.tuning import Search

WARMUP_RUNGS = 2
"""No trial is pruned before: while the learning rate rises, a trial says little about its end."""


def open_study(search: Search) -> Any:
    """The Optuna study, created when it is not there yet. Raises UserError for a storage out of reach."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruners = {
        "median": optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=WARMUP_RUNGS),
        "halving": optuna.pruners.SuccessiveHalvingPruner(WARMUP_RUNGS, reduction_factor=3),
        "none": optuna.pruners.NopPruner(),
    }
    journal = search.out / "journal.log"
    try:
        backend = JournalFileBackend(str(journal), JournalLock(journal))  # type: ignore[arg-type]
        return optuna.create_study(
            storage=search.storage or optuna.storages.JournalStorage(backend),
            study_name=search.name,
            direction="maximize" if search.config.higher_is_better else "minimize",
            pruner=pruners[search.pruner],
            load_if_exists=True,
        )
    except Exception as error:  # SQLAlchemy and the drivers below it have many kinds
        if not search.storage:
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0].replace(search.storage, "the URL")
        raise UserError(f"cannot open the storage: {reason}; check --storage") from None


def make_sampler(search: Search, number: int) -> Any:
    """The sampler of one trial. Its seed comes from the trial's number: an interrupted study goes on as if
    nothing had happened, and no two processes draw the same."""
    from optuna.samplers import GridSampler, RandomSampler, TPESampler

    if search.sampler == "grid":
        sampler = GridSampler({key: part.grid for key, part in search.space.items()}, seed=search.config.seed)
        sampler.after_trial = lambda *_: None  # type: ignore[method-assign]  # it would stop `Study.optimize`
        return sampler
    seed = int(np.random.SeedSequence([search.config.seed, number]).generate_state(1)[0])
    return TPESampler(seed=seed) if search.sampler == "tpe" else RandomSampler(seed=seed)


class JournalLock:
    """The lock of Optuna's journal. Optuna's own stays for 30 s when its holder is killed; and a line that the
    killed one had half written must go, or the next would be glued to it."""

    def __init__(self, journal: Path) -> None:
        self.journal, self.lock = journal, FileLock(f"{journal}.lock")
        self.release = self.lock.release

    def acquire(self) -> bool:
        self.lock.acquire()
        with self.journal.open("rb") as file:
            is_whole = not file.seek(0, os.SEEK_END) or (file.seek(-1, os.SEEK_END), file.read())[1] == b"\n"
        if not is_whole:
            os.truncate(self.journal, self.journal.read_bytes().rfind(b"\n") + 1)
        return True
