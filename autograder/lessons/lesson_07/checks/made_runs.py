"""Runs for exercise 7.3, step by step and session by session, of every sort that a guard may meet."""

from __future__ import annotations

import numpy as np

from autograder.lessons.lesson_07.checks.made_guards import DEFAULT_ALARMS, Run, simulate


def runs(rng: np.random.Generator) -> list[Run]:
    """Of every sort one."""
    return [
        _spread(rng, 1, with_alarms=None),
        _spread(rng, 2, with_alarms=(0.5, 0.8)),
        _spread(rng, 1, with_alarms=(0.5, 0.8)),
        _spread(rng, 1, with_alarms=(0.5, 0.8)),
        _spread(rng, 3, with_alarms=(0.25, 0.6, 0.9)),
        _spread(rng, 3, with_alarms=()),
        _two_at_once(rng),
        _exact(rng, alarms=(0.25, 0.5, 0.75)),
        _exact(rng, alarms=(0.5,), lacks=1e-6),
        _exact(rng, alarms=(0.25, 0.5), lacks=-1e-6),
        _alarm_at_the_stop(rng),
        _slow_once(rng),
        _too_small(rng),
        _quick(rng),
        _overspent(rng),
        _no_room(rng),
    ]


def _clocks(rng: np.random.Generator, number: int) -> list[float]:
    """Clocks that begin anywhere, also at 0 and below: only differences mean something."""
    some = [0.0, float(rng.integers(1, 10**5)), -float(rng.integers(1, 10**4)), float(rng.integers(1, 100))]
    return [some[int(i)] for i in rng.permutation(4)[:number]] if number > 1 else some[:1]


def _spread(rng: np.random.Generator, num_sessions: int, with_alarms: tuple[float, ...] | None) -> Run:
    """A budget that is spent in the last session, somewhere in its middle."""
    while True:
        run = _drawn(rng, num_sessions, with_alarms)
        given, last = run.settings, simulate(run)[-1]
        after = last["spent"] + (run.saves or [0.0])[-1] * (run.prices or [0.0])[-1] / 3600.0
        sums = [share * given["budget"] for share in given.get("alarms", DEFAULT_ALARMS)]
        if not any(0.99 * last["spent"] < money < 1.01 * after for money in sums):
            return run  # whether the save itself passes an alarm is left open


def _drawn(rng: np.random.Generator, num_sessions: int, with_alarms: tuple[float, ...] | None) -> Run:
    price = float(rng.uniform(0.8, 12.0))
    # A save takes 21 s or more, a step 20 at most: a guard that keeps a step in reserve and no save always overspends.
    save_seconds = float(rng.uniform(35.0, 60.0))
    sessions = []
    for session in range(num_sessions):
        is_last = session == num_sessions - 1
        durations = rng.uniform(5.0, 10.0, size=160 if is_last else int(rng.integers(20, 40)))
        # No later step takes longer than the first session's slowest, which is neither its first nor its last.
        durations[3] = (12.0 if session else 18.0) + float(rng.uniform(0.0, 2.0))
        sessions.append(durations.tolist())
    prices = [price, *(price * float(factor) for factor in rng.choice([0.5, 2.0, 3.0], num_sessions - 1))]
    shares = [1.0] * (num_sessions - 1) + [float(rng.uniform(0.4, 0.8))]
    budget = sum(share * sum(s) * p for share, s, p in zip(shares, sessions, prices, strict=True)) / 3600.0
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": save_seconds}
    if with_alarms is not None:
        settings["alarms"] = list(with_alarms)
    save_takes = save_seconds * float(rng.uniform(0.6, 1.0))
    # Before the last session saving took longer, by more than a step.
    saves = [save_seconds + float(rng.uniform(15.0, 25.0)) for _ in sessions[1:]] + [save_seconds]
    return Run(settings, sessions, save_takes, _clocks(rng, num_sessions), prices, saves=saves)


def _two_at_once(rng: np.random.Generator) -> Run:
    """Few steps, each worth more than what lies between two alarms."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(900.0, 1100.0))
    budget = 10.3 * step / 3600.0 * price
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": 0.5 * step}
    shares = [0.30, 0.33, 0.35, 0.70]  # after the 4th step three, after the 8th one
    return Run(settings | {"alarms": shares}, [[step] * 5, [step] * 20], 0.4 * step, _clocks(rng, 2))


def _exact(rng: np.random.Generator, alarms: tuple[float, ...], lacks: float = 0.0) -> Run:
    """Quarters of an hour at a whole price a second: sums are at a share exactly, and the last step fits exactly, or
    this share of the budget is lacking, or is too much: then a sum is a hair's breadth below a share."""
    price = 3600.0 * float(rng.choice([1.0, 2.0, 4.0]))
    save = float(rng.choice([0.0, 1.0, 2.0]))
    steps, quarter = 16, 900.0
    budget = quarter * steps * price / 3600.0 * (1.0 - lacks)
    first = int(rng.integers(2, 7))
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": save * quarter}
    clocks = [quarter * float(n) for n in rng.integers(-9, 9, size=2)]
    sessions = [[quarter] * first, [quarter] * 20]
    return Run(settings | {"alarms": list(alarms)}, sessions, save * quarter, clocks)


def _alarm_at_the_stop(rng: np.random.Generator) -> Run:
    """The step after which the run must end passes an alarm, too."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(90.0, 110.0))
    num_steps = int(rng.integers(8, 12))
    budget = (num_steps + 2.35) * step / 3600.0 * price  # the last step is the longest
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": 0.9 * step}
    share = (num_steps - 0.4) / (num_steps + 2.35)
    given = settings | {"alarms": [0.1, share]}
    # Then goes on from what is in the checkpoint: with this step paid, and its alarms given, there is room for no step.
    sequel = (float(rng.integers(100, 1000)), 0.01 * step)
    steps = [step] * (num_steps - 1) + [1.3 * step] * 20
    return Run(given, [steps], 0.3 * step, _clocks(rng, 1), sequel=sequel)


def _slow_once(rng: np.random.Generator) -> Run:
    """One slow step early in the first session, and quick ones ever after, on a machine at half the price.

    What an alarm takes and a step make less than the slow step, so that it is the same which of them it is a part of.
    """
    price = float(rng.uniform(1.0, 9.0))
    quick, slow = float(rng.uniform(4.0, 6.0)), float(rng.uniform(60.0, 80.0))
    sessions = [[quick, quick, slow, quick, quick], [quick] * 60]
    budget = (sum(sessions[0]) + 20.25 * quick) / 3600.0 * price
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": float(rng.uniform(1.0, 3.0))}
    return Run(
        settings | {"alarms": [0.6]},
        sessions,
        save_takes=1.0,
        clocks=_clocks(rng, 2),
        prices=[price, 0.5 * price],
        notify_takes=4.3 * quick,
        loading_takes=5.4 * quick,
        late=3.3 * quick,
    )


def _too_small(rng: np.random.Generator) -> Run:
    """A budget of which one step leaves no room for another."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(50.0, 90.0))
    settings = {"budget": 1.8 * step / 3600.0 * price, "price_per_hour": price, "save_seconds": 0.1 * step}
    return Run(settings | {"alarms": [0.5, 0.9]}, [[step] * 9], 0.1 * step, _clocks(rng, 1))


def _quick(rng: np.random.Generator) -> Run:
    """Steps of a fraction of a second, and a save of another: sums far below a cent. Of four sessions the first and the
    third are over before their first step. The first alarm is due as soon as there is a step."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(0.1, 0.3))
    settings = {"budget": 40.37 * step / 3600.0 * price, "price_per_hour": price, "save_seconds": 0.5 * step}
    sessions = [[], [step] * 12, [], [step] * 60]
    return Run(settings | {"alarms": [0.0, 0.2, 0.7]}, sessions, 0.4 * step, _clocks(rng, 4))


def _overspent(rng: np.random.Generator) -> Run:
    """One step takes far longer than any before: more is spent than the budget, and alarms above 1 are due."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(20.0, 40.0))
    settings = {"budget": 20.0 * step / 3600.0 * price, "price_per_hour": price, "save_seconds": step}
    steps = [*[step] * int(rng.integers(2, 8)), 24.0 * step]
    return Run(settings | {"alarms": [0.9, 1.0, 1.1, 3.0]}, [steps], 0.5 * step, _clocks(rng, 1))


def _no_room(rng: np.random.Generator) -> Run:
    """A budget that pays for no save: the run ends after its first step, which was too quick for the clock."""
    price, save = float(rng.uniform(1.0, 9.0)), float(rng.uniform(80.0, 120.0))
    settings = {"budget": 0.9 * save / 3600.0 * price, "price_per_hour": price, "save_seconds": save}
    return Run(settings | {"alarms": [0.5]}, [[0.0, *[0.1 * save] * 20]], 0.5 * save, _clocks(rng, 1))
