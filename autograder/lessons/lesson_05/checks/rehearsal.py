"""What 5.5 asks of a search before its winners are judged: its bill, its ranges, and that it can be repeated.

The losses are made up and cost nothing, so lengths of trials, ranges and the order of the space can be any. The best
configuration stands in a corner of the space, at the low end of one range and the high end of the other: what tries
values beside it has to stay inside. The first trial of all diverges, so do the highest learning rates, and, in the
second half of its length, the trial that gets there first. In two searches all trials do, at once or late.
"""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job, failure
from autograder.lessons.lesson_05.checks.billing import Bill, Config, Raised, converse, key_of

Space = dict[str, dict[str, Any]]
SAYS = "pruned trials are counted as free, or every trial gets its full length; all steps are billed"


class _Losses:
    """Made up: a configuration's loss falls with its steps, and with its distance from the best corner."""

    def __init__(self, space: Space, full_steps: int, unit: float, lost_after: float) -> None:
        self.space, self.configs, self.full_steps = space, list[Config](), full_steps
        self.unit, self.lost_after = unit, lost_after
        self.steps: dict[tuple[Any, ...], int] = {}
        self.late: tuple[Any, ...] | None = None
        """The trial that diverges when it has more than half of its steps."""

    def train(self, config: Config, num_steps: int) -> float:
        key = key_of(config)
        if key not in self.steps:
            self.configs.append(config)
        self.steps[key] = self.steps.get(key, 0) + num_steps
        if self._is_lost(config) or self.steps[key] > self.lost_after:
            return math.nan
        if self.late is None and 2 * self.steps[key] > self.full_steps:
            self.late = key
        if key == self.late:
            return math.nan
        distance = self._place(config, "learning_rate") + 1 - self._place(config, "weight_decay")
        return self.unit * (0.1 + distance + 1 / self.steps[key])

    def is_late(self, config: Config) -> bool:
        """Whether it has had losses, and then diverged."""
        return bool(key_of(config) == self.late)

    def diverges(self, config: Config) -> bool:
        """Whether it is lost, though a trial that has had no fewer steps is not."""
        key = key_of(config)
        sound = [
            self.steps[key_of(one)]
            for one in self.configs
            if not self._is_lost(one) and key_of(one) != self.late
        ]
        if key == self.late:
            return max(sound, default=0) >= self.steps[key]
        return self._is_lost(config) and bool(sound)

    def _is_lost(self, config: Config) -> bool:
        return config == self.configs[0] or self._place(config, "learning_rate") > 0.8

    def _place(self, config: Config, name: str) -> float:
        """Where in its range, 0 … 1."""
        low, high = (math.log(self.space[name][end]) for end in ("low", "high"))
        return (math.log(config[name]) - low) / (high - low)


def require_sound_search(job: Job) -> None:
    """The search keeps to its budget and its ranges, returns what does not diverge, and can be repeated."""
    rng = job.rng
    # One whose steps in full no divisor that rounds begin with divides, 2, 3, 5 or 9; then one of each rest by 9, and
    # of each rest by 27 the shortest, in which a step that is rounded weighs most.
    lengths = [30 * int(rng.integers(3, 8)) + int(rng.choice([1, 7, 11, 17, 23, 29]))]
    lengths += [81 + rest + 9 * int(rng.integers(0, 12)) for rest in rng.permutation(9).tolist()]
    lengths += [int(length) for length in 82 + rng.permutation(27)]
    # The names the other way round than in the real searches, and ranges that have nothing in common with those.
    space: Space = {}
    for name, lowest in {"weight_decay": -0.5, "learning_rate": -9.0}.items():
        low = 10 ** rng.uniform(lowest, lowest + 1)
        space[name] = {"kind": "log", "low": float(low), "high": float(low * 10 ** rng.uniform(2, 4))}
    # In every second one, and not in the first, they are so narrow that hardly a step beside a value stays inside.
    narrow = {name: part | {"high": 2 * part["low"]} for name, part in space.items()}
    given, *others = (
        {
            "space": narrow if number % 4 > 1 else space,
            "full_steps": steps,
            "max_total_steps": 6 * steps,
            "seed": int(rng.integers(2**32)),
        }
        for number, steps in enumerate(lengths)
    )
    # The unit of a loss is anyone's choice: what stands for NaN must be above all of them.
    for other, power in zip(others, [12.0, *rng.uniform(-6, 6, size=len(others) - 1)], strict=True):
        _rehearse(job, other, 10**power)
    for lost_after in (0, lengths[0] // 2):
        _converse(job, given, 1.0, lost_after)
    found = [_rehearse(job, given | {"seed": 0}, 1.0) for _ in range(2)]  # 0 is a seed like any other
    job.require(
        found[0] == found[1],
        expected="the same trials and the same configuration for the same seed",
        got="others",
        likely="numbers come from a generator that does not begin with `seed` (as where seed 0 counts as none), or "
        "something is kept from an earlier call: the search cannot be repeated",
        look="`np.random.default_rng(seed)`, and nothing beside it",
    )
    again = job.learner().call("searched_elsewhere", source=job.source, entry=job.entry, given=given)
    job.require(
        not again["trouble"],
        expected="a cell that searches in a fresh interpreter too",
        got=again["trouble"],
        likely="the cell needs something that stands outside it",
        look="run this cell alone in a new kernel, and call `search`",
    )
    job.require(
        again["is_same"],
        expected="the same trials for the same seed when Python is started again",
        got="others",
        likely="the order of a `set`, or `hash()`, decides what is drawn: it is new each time Python starts, whatever "
        "the seed",
        look="go through the names in an order that is always the same, such as the dict's own",
    )


def _rehearse(job: Job, given: dict[str, Any], unit: float) -> tuple[list[Config], Any]:
    """The configurations that were tried, in their order, and what was returned."""
    losses, answer = _converse(job, given, unit)
    job.require(
        not losses.configs or not losses.diverges(answer),
        expected="a configuration that does not diverge, as some of those that were tried",
        got=f"{str(answer)[:100]}, which ends in NaN",
        likely=_why_it_diverges(job, given, losses, answer),
        look="write `math.inf` in its place before anything is compared",
    )
    return losses.configs, answer


def _why_it_diverges(job: Job, given: dict[str, Any], losses: _Losses, answer: Config) -> str:
    if losses.unit > 1 and losses.diverges(answer) and not losses.is_late(answer):
        small, chosen = _converse(job, given, 1e-9)
        if not small.diverges(chosen):
            return (
                f"a number stands for NaN, and losses may be higher: here they are around {losses.unit:.0e}, as nobody "
                "knows the unit of the loss"
            )
    return "a configuration that diverges is returned: NaN is neither smaller nor larger than anything" + (
        "; or the lowest loss that it ever had is what counts" if losses.is_late(answer) else ""
    )


def _converse(
    job: Job, given: dict[str, Any], unit: float, lost_after: float = math.inf
) -> tuple[_Losses, Any]:
    """One search that keeps to its budget and its ranges: the losses that it got, and what was returned.

    `lost_after`: the steps after which every trial diverges.
    """
    space, budget = given["space"], given["max_total_steps"]
    losses = _Losses(space, given["full_steps"], unit, lost_after)
    bill = Bill(
        losses.train, most_steps=4 * budget, says=SAYS
    )  # let go on for a while: what it does says why

    def pay(config: Config, num_steps: Any) -> dict[str, Any]:
        require_config(config, space, [*losses.configs, config])
        return bill.pay(config, num_steps)

    answer = converse(job, pay, may_raise=lost_after < math.inf, **given)
    if isinstance(answer, Raised) or (answer is None and lost_after < math.inf):
        raise failure(
            expected=f"a configuration, though all trials diverge after {lost_after} steps",
            got=f"{answer.error}: {answer.message}" if isinstance(answer, Raised) else "None",
            likely="there is nothing to choose from where all trials of a round diverged",
            look="what is left of a round without its diverged trials?",
        )
    require_config(answer, space, losses.configs or [answer])
    job.require(
        bill.total <= budget,
        expected=f"at most {budget} training steps in all, where full_steps is {given['full_steps']}",
        got=str(bill.total),
        likely="rounds whose lengths are rounded, up or to the nearest, where their number was planned with unrounded "
        "ones; all steps are billed"
        if bill.total < 1.05 * budget
        else SAYS,
        look="one counter, beside the one call of `train`, that is asked before it",
    )
    return losses, answer


def require_config(config: Any, space: Space, tried: list[Config]) -> None:
    """Fail where this is no configuration of the space; `tried` are those of the search so far."""
    if not isinstance(config, dict) or config.keys() != space.keys():
        raise failure(
            expected=f"a configuration: a dict with {', '.join(space)}, and nothing else",
            got=f"{str(config)[:100]}",
            likely="a loss or a list is returned, or a key is left out",
            look="return the dict that you would train with",
        )
    for name, value in config.items():
        low, high = space[name]["low"], space[name]["high"]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise failure(
                expected=f"{name}: a number",
                got=f"a {type(value).__name__}",
                likely="an array or a text where a number is asked for",
                look="`float(...)`",
            )
        if not _is_inside(value, space[name]):
            raise failure(
                expected=f"{name} in {low:.3g} … {high:.3g}",
                got=f"{value:.6g}",
                likely=_why_outside(space, tried),
                look="print the smallest and the largest value of each name",
            )


def _is_inside(value: float, part: dict[str, Any]) -> bool:
    return bool(part["low"] * (1 - 1e-9) <= value <= part["high"] * (1 + 1e-9))


def _why_outside(space: Space, tried: list[Config]) -> str:
    names = list(space)
    others = dict(zip(names, reversed(names), strict=True))
    if all(_is_inside(config[name], space[others[name]]) for config in tried for name in names):
        return "the parts of the space are taken by their place, not by their name: they come in any order"
    if any(not _is_inside(value, space[name]) for name, value in tried[0].items()):
        return "the search space is left: its ends are mixed up, or fixed values are taken instead of the given ones"
    return (
        "the search space is left: values beside the best one are not kept inside the range, of which the best may "
        "stand at an end"
    )
