"""Harness of 5.1 and 5.4: many draws of a sampler, many decisions over losses."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import elsewhere, generators, learner


def _space(space: dict[str, Any]) -> dict[str, Any]:
    """The space as the exercise describes it: what came as a list on the way here is a pair again.

    Of two equal parts the second is the first: one dict under two names.
    """
    parts: dict[str, dict[str, Any]] = {}
    whole = {
        name: {
            key: tuple(tuple(one) if isinstance(one, list) else one for one in value)
            if key == "when"
            else [tuple(one) if isinstance(one, list) else one for one in value]
            if key == "values"
            else value
            for key, value in part.items()
        }
        for name, part in space.items()
    }
    return {name: parts.setdefault(repr(part), part) for name, part in whole.items()}


def draw_samples(space: dict[str, Any], seed: int, number: int) -> dict[str, Any]:
    """`number` samples as columns: [number] of values, and [number] of whether a sample has the key.

    Choices come as their place among the values, -1 for something else; absent values as 0.
    """
    space = _space(space)
    given = copy.deepcopy(space)
    rng, elsewhere_before = _generator(seed), generators()
    state = copy.deepcopy(rng.bit_generator.state)
    try:
        samples = [learner(given, rng) for _ in range(number)]
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:200]
        if choice := _choice_that_fails(space, seed):
            return {"strange": "", "choice": choice, "said": said}
        if not isinstance(error, ValueError):
            raise
        return {"strange": said}
    strange = [type(sample).__name__ for sample in samples if not isinstance(sample, dict)]
    if strange:
        return {"strange": f"a {strange[0]}"}
    rng.bit_generator.state = state
    again = [learner(given, rng) for _ in range(20)]
    columns, present, odd = {}, {}, set()
    for name, part in space.items():
        columns[name], present[name] = np.zeros(number), np.array([name in sample for sample in samples])
        for at in np.flatnonzero(present[name]):
            columns[name][at], is_odd = _number(part, samples[at][name])
            if is_odd:
                odd.add(name)
    return {
        "strange": "",
        "columns": columns,
        "present": present,
        "odd": sorted(odd),
        "extra": sorted({str(key) for sample in samples for key in sample} - set(space)),
        "is_one_object": len({id(sample) for sample in samples}) < number,
        "is_repeatable": str(samples[:20]) == str(again) and generators() == elsewhere_before,
        "is_unchanged": repr(given) == repr(space),  # the order of its keys too
    }


def _generator(seed: int) -> np.random.Generator:
    """Of any of the kinds that NumPy has: a Generator need not be that of `default_rng`."""
    kinds = (np.random.PCG64, np.random.Philox, np.random.SFC64)
    return np.random.Generator(kinds[seed % len(kinds)](seed))


def _choice_that_fails(space: dict[str, Any], seed: int) -> str:
    """The values of a choice that cannot be drawn from, where as many texts in their place can; else ""."""
    for part in space.values():
        if part["kind"] == "choice":
            texts = {"kind": "choice", "values": [f"text {at}" for at in range(len(part["values"]))]}
            given = {"kind": "choice", "values": list(part["values"])}
            if _fails({"name": given}, seed) and not _fails({"name": texts}, seed):
                return str(given["values"])
    return ""


def _fails(space: dict[str, Any], seed: int) -> bool:
    rng = np.random.default_rng(seed)
    try:
        for _ in range(20):
            learner(space, rng)
    except Exception:
        return True
    return False


def draw_odd(spaces: list[dict[str, Any]], seed: int) -> list[list[dict[str, Any]]]:
    """20 samples of each space; an error, or what is no dict, as {"error": …}."""
    rng, found = np.random.default_rng(seed), []
    for space in map(_space, spaces):
        try:
            found.append([dict(learner(space, rng)) for _ in range(20)])
        except Exception as error:
            found.append([{"error": f"{type(error).__name__}: {error}"[:200]}])
    return found


_DRAW = """
import numpy
for part in request["space"].values():
    if "when" in part:
        part["when"] = tuple(part["when"])
rng = numpy.random.default_rng(request["seed"])
say([repr(sorted(learner(request["space"], rng).items())) for _ in range(20)])
"""


def drawn_elsewhere(
    source: str, entry: str, space: dict[str, Any], seed: int, hash_seed: int
) -> dict[str, Any]:
    """Whether a fresh interpreter, which orders sets otherwise, draws as this one; what it said if it failed.

    One alone: each loads all that the cell imports.
    """
    rng, given = np.random.default_rng(seed), _space(space)
    here = [repr(sorted(learner(given, rng).items())) for _ in range(20)]
    try:
        there = elsewhere(_DRAW, source, entry, {"space": space, "seed": seed}, hash_seed)
    except RuntimeError as error:
        return {"is_same": False, "trouble": str(error)}
    return {"is_same": there == here, "trouble": ""}


def _number(part: dict[str, Any], value: Any) -> tuple[float, bool]:
    """A value as a number, a choice as its place; and whether it is of another type than asked for."""
    if part["kind"] == "choice":
        places = [at for at, one in enumerate(part["values"]) if type(value) is type(one) and value == one]
        places = places or [at for at, one in enumerate(part["values"]) if _is_same(value, one)]
        return (float(places[0]) if places else -1.0), False
    kinds: Any = (int, np.integer) if part["kind"] == "int" else float
    is_odd = not isinstance(value, kinds) or isinstance(value, bool | np.bool_)
    try:
        return float(np.asarray(value).item()), is_odd
    except (TypeError, ValueError):
        return 0.0, True


def _is_same(value: Any, one: Any) -> bool:
    """NumPy's own numbers and texts count as Python's."""
    return np.ndim(value) == 0 and isinstance(value, np.generic) and bool(value.item() == one)


def refuse(spaces: list[dict[str, Any]], name: str, seed: int) -> list[tuple[str, str]]:
    """For each space "ValueError" where each of 20 draws raises it; else what the first other draw gives.

    With it the same of a space that is right at a first draw, and then gets the range `name` that cannot be.
    """
    rng = np.random.default_rng(seed)
    wrong = [_space(space) for space in spaces]
    at_once = [
        _refused(space, rng) for space in wrong
    ]  # first, as what is kept of the others could pass for it
    return list(zip(at_once, [_refused_later(space, name, rng) for space in wrong], strict=True))


def _refused_later(space: dict[str, Any], name: str, rng: np.random.Generator) -> str:
    part = space[name]
    given = copy.deepcopy(space) | {name: part | {"low": 0.25, "high": 0.75}}
    with contextlib.suppress(Exception):
        learner(given, rng)
    given[name] |= {"low": part["low"], "high": part["high"]}
    return _refused(given, rng)


def _refused(space: dict[str, Any], rng: np.random.Generator) -> str:
    before = repr(space)
    for _ in range(20):
        try:
            return f"the sample {str(learner(space, rng))[:80]}"
        except ValueError:
            continue
        except Exception as error:
            return type(error).__name__
    return "ValueError" if repr(space) == before else "ValueError, and a `space` that is not what it was"


def decide(losses: np.ndarray, confidence: float | None, by_name: bool) -> dict[str, Any]:
    """The learner's decision on each of many tables: `losses` float64 [tables, configurations, seeds].

    None leaves the confidence out. "odd" says what has not the form that was asked for, with nothing else beside it.
    "is_changed": whether a table is another one afterwards.
    """
    given: dict[str, Any] = {"confidence": confidence} if by_name else {}
    more = () if by_name or confidence is None else (confidence,)
    tables = losses.copy()
    answers = [learner(table, *more, **given) for table in tables]
    is_changed = not np.array_equal(tables, losses, equal_nan=True)
    columns: dict[str, list[float]] = {name: [] for name in ("candidate", "winner", "low", "high")}
    for answer in answers:
        try:
            low, high = answer["interval"]
            found = (answer["candidate"], answer["winner"], low, high)
            rows = [isinstance(one, int | np.integer) and not isinstance(one, bool) for one in found[:2]]
            if not all(rows) or np.ndim(low) or np.ndim(high):
                raise TypeError("rows are whole numbers, ends are numbers")
            for name, value in zip(columns, found, strict=True):
                columns[name].append(float(value))
        except (TypeError, ValueError, KeyError, IndexError):
            return {"odd": str(answer)[:100]}
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    return arrays | {"odd": "", "is_changed": is_changed}
