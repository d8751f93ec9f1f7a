"""How a harness counts: each event is told to the grader at once, in the process that holds the clock.

What a check is given in an answer was in the solution's process until the answer was sent, and could be changed there.
`tell` is the worker's (`engine/sandbox/inside/telling.py`); a process that was started anew tells nothing.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_lib.measuring import Counts, count_events, peak_bytes
from course_lib.measuring.threads import unfollowed

tell: Any = globals().get("tell") or (lambda *_: 0)


@contextlib.contextmanager
def counted(model: Any = None, *, operators: bool = True, of: str = "") -> Iterator[Counts]:
    """`count_events`, told to the grader: `Worker.counts`. It yields them for the answers of twins.

    Threads that were there before are not counted, and told of. So are forwards that the hook on the model, which
    counts, was not called for.

    `of`: what is counted, where the grader is told of several at a time, such as "rank 1".
    """
    with (
        _stretch(of) as on_event,
        count_events(model, operators=operators, on_event=on_event) as counts,
        _computed(model) as rows,
    ):
        _flag_threads(operators)
        yield counts
        _flag_threads(operators)
        if rows is not None and (counts.num_forwards, counts.num_rows) != (len(rows), sum(rows)):
            tell("flag", PASSED_BY)


def _flag_threads(operators: bool) -> None:
    if operators and unfollowed():
        tell("flag", "while it is counted what is read, threads run whose reads are not seen")


def counted_peak(step: Callable[[], Any]) -> int:
    """`peak_bytes` on a CPU, told to the grader in the same way."""
    with _stretch("") as on_event:
        return peak_bytes(step, torch.device("cpu"), on_event=on_event)


def see(name: str, *numbers: float) -> None:
    """Something else that is counted, told as it happens: `Worker.told.seen`."""
    tell("seen", name, *numbers)


PASSED_BY = (
    "calls of the model and those of the hook that looks on are not the same: it was taken off or called by hand, or "
    "the model's `forward` was called by itself or replaced"
)


@contextlib.contextmanager
def looking_on(module: Any, note: Callable[..., None], *, after: bool = False) -> Iterator[None]:
    """`note` is called as a forward pre-hook of `module` until the block ends, or, `after`, as a forward hook.

    A cell may take hooks off, and call them with what no model has computed. So calls are compared with the forwards
    that there were, by the rows of their first tensors, and another number is told. A block that is checkpointed inside
    its `forward` runs that again: there may be more of the same.
    """
    noted = Counter[int]()

    def hook(called: Any, inputs: tuple[Any, ...], named: dict[str, Any], *output: Any) -> None:
        noted[_rows_of(inputs, named)] += 1
        note(called, inputs, named, *output)

    register = module.register_forward_hook if after else module.register_forward_pre_hook
    with _computed(module) as rows:
        handle = register(hook, with_kwargs=True)
        try:
            yield
            if rows is not None and (noted - Counter(rows) or noted.keys() != set(rows)):
                tell("flag", PASSED_BY)
        finally:
            handle.remove()


@contextlib.contextmanager
def _computed(module: Any) -> Iterator[list[int] | None]:
    """Rows of the first tensor of each forward that this module, or a copy of it, computes, by whatever way it is
    called; None where that cannot be seen.

    Its class gets a `forward` that looks, and has the name that it had.
    """
    kind = type(module)
    if module is None or "forward" in vars(module):  # one that was set on the object itself: there is no other
        yield None
        return
    rows: list[int] = []

    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        rows.append(_rows_of(inputs, named))
        return kind.forward(self, *inputs, **named)

    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    looked = type(kind)(kind.__name__, (kind,), {"forward": forward, **names})
    module.__class__ = looked
    try:
        yield rows
    finally:
        if type(module) is looked:  # else the cell has made another of it, which begins with this one
            module.__class__ = kind


def _rows_of(inputs: tuple[Any, ...], named: dict[str, Any]) -> int:
    return next((len(t) for t in (*inputs, *named.values()) if isinstance(t, torch.Tensor) and t.ndim), 0)


@contextlib.contextmanager
def _stretch(of: str) -> Iterator[Callable[[str, int], None]]:
    number = tell("open", of)
    try:
        yield lambda name, amount: tell("count", number, name, amount)
    finally:
        tell("close", number)
