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

    Threads that were there before are not counted, and told of. Forwards count by whatever way they are called, and
    calls of the hook that counts them without a forward are told of.

    `of`: what is counted, where the grader is told of several at a time, such as "rank 1".
    """
    num_forwards = num_rows = 0
    with (
        _stretch(of) as on_event,
        count_events(model, operators=operators, on_event=on_event) as counts,
    ):

        def look(_model: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            nonlocal num_forwards, num_rows
            rows = next(iter(_shape_of(inputs, named)), 0)
            if counts.num_forwards <= num_forwards:  # no hook has announced it
                if _is_recomputed():
                    return
                for name, amount in (("num_forwards", 1), ("num_rows", rows), ("max_rows", rows)):
                    on_event(name, amount)
                    counts.note(name, amount)
            num_forwards, num_rows = num_forwards + 1, num_rows + rows

        with _computed(model, look) as is_seen:
            _flag_threads(operators)
            yield counts
            _flag_threads(operators)
            if is_seen and (counts.num_forwards, counts.num_rows) != (num_forwards, num_rows):
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


PASSED_BY = "what looks on at a model was told of calls that it has not computed, or of others than it has"


@contextlib.contextmanager
def looking_on(module: Any, note: Callable[..., None], *, after: bool = False) -> Iterator[None]:
    """`note` is called as a forward pre-hook of `module` until the block ends, or, `after`, as a forward hook.

    A cell may take hooks off, call them with what no model has computed, or call `forward`, which knows of none. So
    `note` is called for a forward that no hook has announced, too; and where hooks were called without a forward, or
    with tensors of other shapes, that is told. A block that is checkpointed inside its `forward` runs that again in
    backward, which is no call.
    """
    noted, computed, announced = Counter[tuple[int, ...]](), Counter[tuple[int, ...]](), 0

    def announce(_called: Any, _inputs: Any) -> None:
        nonlocal announced
        announced += 1

    def hook(called: Any, inputs: tuple[Any, ...], named: dict[str, Any], *output: Any) -> None:
        noted[_shape_of(inputs, named)] += 1
        note(called, inputs, named, *output)

    def look(called: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Callable[[Any], None] | None:
        nonlocal announced
        computed[_shape_of(inputs, named)] += 1
        if announced:
            announced -= 1
        elif not _is_recomputed():
            if after:
                return lambda output: note(called, inputs, named, output)
            note(called, inputs, named)
        return None

    register = module.register_forward_hook if after else module.register_forward_pre_hook
    with _computed(module, look) as is_seen:
        handles = [module.register_forward_pre_hook(announce), register(hook, with_kwargs=True)]
        try:
            yield
            if is_seen and (announced or noted - computed):
                tell("flag", PASSED_BY)
        finally:
            for handle in handles:
                handle.remove()


@contextlib.contextmanager
def _computed(module: Any, look: Callable[..., Callable[[Any], None] | None]) -> Iterator[bool]:
    """`look` is told of each forward that this module, or a copy of it, computes, by whatever way it is called, and may
    return what is to be told of its output. False where none can be seen.

    Its class gets a `forward` that looks, and has the name that it had.
    """
    kind = type(module)
    if module is None or "forward" in vars(
        module
    ):  # one that was set on the object itself: there is no other
        yield False
        return

    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        hear = look(self, inputs, named)
        output = kind.forward(self, *inputs, **named)
        if hear:
            hear(output)
        return output

    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    looked = type(kind.__name__, (kind,), {"forward": forward, **names})
    module.__class__ = looked
    try:
        yield True
    finally:
        if type(module) is looked:  # else the cell has made another of it, which begins with this one
            module.__class__ = kind


def _shape_of(inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    """Of the first tensor."""
    tensors = (
        value for value in (*inputs, *named.values()) if isinstance(value, torch.Tensor) and value.ndim
    )
    return next((tuple(tensor.shape[:2]) for tensor in tensors), ())


def _is_recomputed() -> bool:
    """Whether a backward runs: what it computes was computed before."""
    return torch._C._current_graph_task_id() >= 0


@contextlib.contextmanager
def _stretch(of: str) -> Iterator[Callable[[str, int], None]]:
    number = tell("open", of)
    try:
        yield lambda name, amount: tell("count", number, name, amount)
    finally:
        tell("close", number)
