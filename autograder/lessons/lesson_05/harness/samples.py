"""Harness of 5.1 and 5.4: many draws of a sampler, many decisions over losses."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner


def _space(space: dict[str, Any]) -> dict[str, Any]:
    """The space as the exercise describes it: what came as a list on the way here is a pair again."""
    return {
        name: {key: tuple(value) if key == "when" else value for key, value in part.items()}
        for name, part in space.items()
    }


def draw_samples(space: dict[str, Any], seed: int, number: int) -> dict[str, Any]:
    """`number` samples as columns: [number] of values, and [number] of whether a sample has the key.

    Choices come as their place among the values, -1 for something else; absent values as 0.
    """
    space = _space(space)
    given = copy.deepcopy(space)
    rng = np.random.default_rng(seed)
    samples = [learner(given, rng) for _ in range(number)]
    rng = np.random.default_rng(seed)
    again = [learner(given, rng) for _ in range(20)]
    columns, present, odd = {}, {}, []
    for name, part in space.items():
        found = [sample.get(name) for sample in samples]
        if part["kind"] == "choice":
            places = {value: place for place, value in enumerate(part["values"])}
            found = [
                places.get(value, -1) if name in sample else 0
                for value, sample in zip(found, samples, strict=True)
            ]
        else:
            kinds = (int, np.integer) if part["kind"] == "int" else (int, float, np.number)
            if not all(isinstance(v, kinds) for v, s in zip(found, samples, strict=True) if name in s):
                odd.append(name)
        columns[name] = np.array([0.0 if value is None else value for value in found], dtype=np.float64)
        present[name] = np.array([name in sample for sample in samples])
    return {
        "columns": columns,
        "present": present,
        "odd": odd,
        "extra": sorted({str(key) for sample in samples for key in sample} - set(space)),
        "is_repeatable": samples[:20] == again,
        "is_unchanged": given == space,
    }


def refuse(space: dict[str, Any], seed: int) -> str:
    """ "ValueError" where each of 50 draws raises it; else what the first other draw gives."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        try:
            return f"the sample {str(learner(_space(space), rng))[:80]}"
        except ValueError:
            continue
        except Exception as error:
            return type(error).__name__
    return "ValueError"


def decide(losses: np.ndarray, confidence: float) -> dict[str, Any]:
    """The learner's decision on each of many tables: `losses` float64 [tables, configurations, seeds]."""
    answers = [learner(table.copy(), confidence) for table in losses]
    return {
        "candidate": np.array([int(a["candidate"]) for a in answers]),
        "winner": np.array([int(a["winner"]) for a in answers]),
        "low": np.array([float(a["interval"][0]) for a in answers]),
        "high": np.array([float(a["interval"][1]) for a in answers]),
    }
