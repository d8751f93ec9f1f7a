"""Successive halving as 5.3 asks for it and with known mistakes in it, and secret searches that tell them apart."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.engine import failure
from autograder.lessons.lesson_05.checks.billing import Config, key_of

MOST_STEPS = 10**6
"""A trial that goes on for ever is ended here."""


@dataclass
class Search:
    """One secret search: what the learner is given, and the losses of its trials."""

    configs: list[Config]
    min_steps: int
    factor: int
    level: float
    """Losses are about this, give or take `spread`."""
    spread: float
    seed: int
    budget: int = 0
    known: dict[tuple[int, int], float] = field(default_factory=dict)
    """Losses by (place, steps)."""
    had: dict[int, int] = field(default_factory=dict)
    """Steps of the learner's trials, by place."""

    def loss(self, place: int, steps: int) -> float:
        """Of a trial after so many steps in all. Curves cross at every step: only the last round can decide."""
        if (place, steps) not in self.known:
            drawn = np.random.default_rng([self.seed, place, steps]).uniform(-1, 1)
            self.known[place, steps] = self.level + self.spread * float(drawn)
        return self.known[place, steps]

    def train(self, config: Config, num_steps: int) -> float:
        """Go on with the trial of a configuration."""
        keys = [key_of(known) for known in self.configs]
        if key_of(config) not in keys:
            raise failure(
                expected="configurations that are in `configs`",
                got=f"{str(config)[:100]}",
                likely="a configuration was changed on the way, or made anew",
                look="hand the dicts on as they are",
            )
        place = keys.index(key_of(config))
        self.had[place] = self.had.get(place, 0) + num_steps
        return self.loss(place, self.had[place])


def halve(search: Search, mistake: str = "none") -> dict[str, Any]:
    """What halving does in this search: the steps of each trial, the best of the last round, and its loss.

    With them the trials of each round, and the steps that the next one would take in all.
    """
    num = len(search.configs)
    alive, steps, spent, rounds = list(range(num)), search.min_steps, [0] * num, []
    lowest = dict.fromkeys(alive, math.inf)
    while True:
        rounds.append(alive)
        for place in alive:
            spent[place] = steps
        losses = {place: search.loss(place, steps) for place in alive}
        lowest |= {place: min(lowest[place], loss) for place, loss in losses.items() if loss < math.inf}
        shown = {place: lowest[place] for place in alive} if mistake == "the lowest so far" else losses
        ranked = _ranked(shown, mistake)
        kept = _going_on(ranked, search.factor, mistake)
        due = steps * (search.factor - 1)
        is_last = len(alive) == 1 or (mistake == "never alone" and len(kept) == 1)
        is_last |= mistake == "too few to divide" and len(alive) < search.factor
        left = search.budget - sum(spent) + {"one step over": 1, "no exact fit": -1}.get(mistake, 0)
        fits = due * len(kept) <= left or mistake == "no budget"
        if (is_last and mistake != "alone for ever") or not fits or steps > MOST_STEPS:
            break
        alive, steps = kept, steps * search.factor
    if mistake == "part of a round" and not is_last:
        for place in kept[: left // due]:
            spent[place] += due
    answer = {"spent": spent, "rounds": rounds, "next": sum(spent) + due * len(kept)}
    return answer | _report(search, rounds, spent, mistake)


def _ranked(losses: dict[int, float], mistake: str) -> list[int]:
    """The trials of a round, the best first."""
    if mistake == "the first go on":
        return sorted(losses)
    if mistake == "NaN in the sort":
        return sorted(losses, key=losses.__getitem__)
    if mistake == "NaN left out":
        losses = {place: loss for place, loss in losses.items() if math.isfinite(loss)} or losses
    worst = -math.inf if mistake == "NaN is best" else math.inf
    clean = {place: worst if math.isnan(loss) else loss for place, loss in losses.items()}
    return sorted(clean, key=clean.__getitem__, reverse=mistake == "the worst go on")


def _going_on(ranked: list[int], factor: int, mistake: str) -> list[int]:
    share = len(ranked) / factor
    number = {"rounded up": math.ceil(share), "rounded": round(share)}.get(mistake, math.floor(share))
    return ranked[: max(1, number)]


def _report(search: Search, rounds: list[list[int]], spent: list[int], mistake: str) -> dict[str, Any]:
    finalists = rounds[-1]
    last = {place: search.loss(place, spent[place]) for place in finalists}
    best = _ranked(last, mistake)[0]
    lowest: dict[int, float] = {}
    for number, alive in enumerate(rounds):
        for place in alive:
            loss = search.loss(place, search.min_steps * search.factor**number)
            if not math.isnan(loss):
                lowest[place] = min(loss, lowest.get(place, math.inf))
    if mistake == "lowest of all rounds":
        best = min(lowest, key=lowest.__getitem__)
    elif mistake == "NaN in the minimum":
        best = min(last, key=last.__getitem__)
    is_lowest = mistake in ("lowest of all rounds", "its lowest loss")
    place = finalists.index(best) if mistake == "place among the last" else best
    return {"best": place, "value": lowest[best] if is_lowest else search.loss(best, spent[best])}


@dataclass(frozen=True)
class Kind:
    """A search that shows certain mistakes: another outcome for each than the right one."""

    most: int
    """Trials, and as few as two thirds of it."""
    shows: tuple[str, ...]
    level: float
    """Of the losses."""
    rounds: int = 99
    """That the budget has room for."""
    beyond: int = 0
    """Steps that the budget has beyond them; -1: it ends one step before the next round fits."""
    hides: tuple[str, ...] = ()
    """Mistakes that have the right outcome here: one that is like it shows first."""


_GO_ON = ("NaN in the sort", "NaN is best", "NaN left out", "the worst go on", "the first go on")
_REPORT = ("lowest of all rounds", "its lowest loss", "NaN in the minimum", "place among the last")
# First those whose budget never ends: what is wrong there is no matter of the budget.
KINDS = (
    Kind(
        most=11,
        level=0.0,
        beyond=10_000,
        shows=(*_GO_ON, "rounded", "never alone", "alone for ever", "the lowest so far"),
        hides=("too few to divide",),
    ),
    Kind(most=3, level=1e-6, beyond=500, shows=("too few to divide", "alone for ever")),
    Kind(most=1, level=1.0, beyond=100, shows=("alone for ever",)),
    Kind(
        most=20,
        level=1e305,
        rounds=2,
        beyond=-1,
        shows=(*_GO_ON, "no budget", "one step over", "part of a round", "lowest of all rounds"),
    ),
    Kind(most=17, level=2.0, rounds=2, shows=(*_GO_ON, *_REPORT, "no exact fit")),
    Kind(most=15, level=-1e-12, shows=("rounded up", "no exact fit", "its lowest loss", "the first go on")),
    Kind(most=8, level=30.0, rounds=1, shows=("no budget", "NaN in the minimum")),
)


def draw_searches(rng: np.random.Generator) -> list[Search]:
    """A search of each kind, under secret sizes and factors."""
    while True:
        first = rng.permutation([1, 2, 3, 4, 5, 7, 10]).tolist()
        searches = [_draw(rng, *each) for each in zip(KINDS, first, strict=True)]
        if len({search.factor for search in searches}) > 2:
            return searches


def draw_ties(rng: np.random.Generator, before: Search) -> list[Search]:
    """Searches over the configurations of one before, NaN alone in round 2, the last.

    In round 1 losses are equal; or none is a number; or one alone is, though more than one goes on. In one more search
    all are equal until one trains alone, which then is NaN.
    """
    searches = []
    for num_sound in (len(before.configs), 0, 1):
        num, first, factor = len(before.configs), before.min_steps, int(rng.integers(2, 4))
        search = Search(before.configs, first, factor, level=before.level, spread=0.0, seed=0)
        search.known = {(place, first * factor): math.nan for place in range(num)}
        search.known |= {(place, first): math.nan for place in rng.permutation(num)[num_sound:].tolist()}
        search.budget = first * (num + num // factor * (factor - 1))
        searches.append(search)
    return [*searches, _alone_and_lost(before)]


def _alone_and_lost(before: Search) -> Search:
    search = Search(before.configs, before.min_steps, 2, before.level, spread=0.0, seed=0, budget=MOST_STEPS)
    last = before.min_steps * 2 ** (len(halve(search)["rounds"]) - 1)
    # The first of all is dropped, and so none of the last round.
    search.known[0, before.min_steps] = before.level + 1 + abs(before.level)
    search.known |= {(place, last): math.nan for place in range(len(before.configs))}
    return search


def _draw(rng: np.random.Generator, kind: Kind, min_steps: int) -> Search:
    """Drawn again until each mistake that the kind shows has an outcome of its own."""
    while True:
        num = int(rng.integers((2 * kind.most + 2) // 3, kind.most + 1))
        factor, seed = int(rng.integers(2, 6)), int(rng.integers(2**31))
        spread = abs(kind.level) * float(rng.uniform(0.3, 0.6)) or 1.0
        search = Search(_configs(rng, num), min_steps, factor, kind.level, spread, seed)
        _set_losses(rng, search, kind)
        found = [halve(search, mistake) for mistake in ("none", *kind.shows)]
        outcomes = [(one["spent"], one["best"], one["value"]) for one in found]
        is_clear = all(one != other for one, other in itertools.combinations(outcomes, 2))
        is_hidden = all(halve(search, mistake)["spent"] == found[0]["spent"] for mistake in kind.hides)
        if is_clear and is_hidden and math.isfinite(found[0]["value"]):
            return search


def _set_losses(rng: np.random.Generator, search: Search, kind: Kind) -> None:
    """Some losses that are no random numbers, and the budget that goes with what then happens.

    In the first round trials diverge, the first of all among them, and one looks best that then is worst, or diverges.
    """
    num, first = len(search.configs), search.min_steps
    second = first * search.factor
    num_pruned = num - max(1, num // search.factor) if kind.rounds > 1 else num - 1
    diverged = [0, num - 1, num // 2][: min(3, num_pruned)] if num > 1 else []
    for place in diverged:
        search.known[place, first] = math.inf if kind.level < 0 and place == num // 2 else math.nan
    early = int(rng.choice([place for place in range(num) if place not in diverged]))
    # As a loss that decides, 0 is no "nothing".
    search.known[early, first] = 0.0 if kind.rounds == 1 else search.level - 1.5 * search.spread
    search.budget = MOST_STEPS
    if num > 1:
        alive = halve(search)["rounds"][1]
        search.known[early, second] = search.level + 1.5 * search.spread
        if kind.rounds == 2 and len(alive) > 1:
            diverging = early if kind.beyond == 0 else next(place for place in alive if place != early)
            search.known[diverging, second] = math.nan
    search.budget = _budget(search, kind)


def _budget(search: Search, kind: Kind) -> int:
    """Room for the kind's rounds, and what is beyond them."""
    search.budget = len(search.configs) * search.min_steps
    for _ in range(kind.rounds - 1):
        found = halve(search)
        if len(found["rounds"][-1]) == 1:
            break
        search.budget = found["next"]
    return halve(search)["next"] - 1 if kind.beyond < 0 else search.budget + kind.beyond


def _configs(rng: np.random.Generator, num: int) -> list[Config]:
    """All different, by the last bits of a value or by a name alone: values come again and again, as in a grid.

    Three at a time have the same values: the second has one of them under another name, the third two exchanged. The
    next three differ from them by the last bits alone.
    """
    rates, decays = 10 ** rng.uniform(-5, -1, size=3), rng.uniform(0.01, 0.1, size=2)
    names = ["learning_rate", *rng.permutation(["weight_decay", "dropout", "momentum"]).tolist()]
    shares = rng.uniform(0.11, 0.2) + (rng.permutation(num) + 1) * 10.0 ** -rng.integers(14, 16)
    configs = []
    for place in range(num):
        group, kind = divmod(place, 3)
        rate, decay, share = float(rates[group // 2 % 3]), float(decays[group // 2 % 2]), float(shares[group])
        if kind == 2:
            decay, share = share, decay
        configs.append({names[0]: rate, names[1]: decay, names[3 if kind == 1 else 2]: share})
    return configs
