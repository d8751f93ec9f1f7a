"""What 5.3 and 5.5 share: a search that talks to a training in this process, which bills every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.engine import Job, failure

Config = dict[str, Any]


def key_of(config: Config) -> tuple[Any, ...]:
    """What makes it the same configuration, in whatever order its keys are."""
    return tuple(sorted(config.items()))


class Bill:
    """Every step that is paid for, by trial. `train(config, num_steps) -> loss` goes on with a trial."""

    def __init__(self, train: Callable[[Config, int], float], *, most_steps: int, says: str) -> None:
        self.train, self.most_steps, self.says = train, most_steps, says
        self.steps: dict[tuple[Any, ...], int] = {}

    @property
    def total(self) -> int:
        return sum(self.steps.values())

    def pay(self, config: Config, num_steps: Any) -> dict[str, Any]:
        """Train and bill. A number of steps that cannot be is told to the learner's code as a ValueError."""
        if not isinstance(num_steps, int) or isinstance(num_steps, bool) or num_steps < 1:
            return {"error": f"num_steps must be a whole number, at least 1; got {num_steps!r}"}
        if not all(isinstance(value, int | float | str) for value in config.values()):
            return {"error": "a configuration holds plain numbers and texts"}
        key = key_of(config)
        self.steps[key] = self.steps.get(key, 0) + num_steps
        if self.total > self.most_steps:
            raise failure(
                expected=f"at most {self.most_steps} training steps in all",
                got=f"{self.total} so far, over {len(self.steps)} trials, and the search goes on",
                likely=self.says,
                look="one counter, beside the one call of `train`",
            )
        return {"loss": self.train(config, num_steps)}


@dataclass(frozen=True)
class Raised:
    """The name of the error that the learner's search ended with, and what it said."""

    error: str
    message: str = field(default="", compare=False)


def converse(
    job: Job, pay: Callable[[Config, Any], dict[str, Any]], *, may_raise: bool = False, **arguments: Any
) -> Any:
    """Run the learner's search, answer each of its calls of `train`, and return what the search returns.

    With `may_raise` an error that it ends with is a `Raised`; `raise_again` then tells it as any other.
    """
    request = job.learner().call("start_search", may_raise=may_raise, **arguments)
    while "answer" not in request:
        if "raised" in request:
            return Raised(str(request["raised"]), str(request["message"]))
        request = job.learner().call("go_on", reply=pay(request["config"], request["num_steps"]))
    job.require(
        "space" not in request["changed"],
        expected="a `space` that is as it was before the call",
        got="another one",
        likely="the ranges of the caller are written over, as by their logarithms: the next search has another space",
        look="keep what you work out of `space` in variables of your own",
    )
    return request["answer"]


def raise_again(job: Job) -> None:
    """Fail with the error that the search ended with, and with its line."""
    job.learner().call("raise_again")
