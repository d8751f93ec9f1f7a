"""What the form of the options gives away: how often a key is found by who reads options and not questions.

    python -m tools.question_form        # a table, a line for each bank

Two who know nothing try: a *rule*, written down from habits of authors, and a *model*, a logistic regression on
features of form alone, which has learnt from all banks but the one that it is tried on. A bank is a lesson's quiz with
both its forms, or the exam. Chance is one over the number of options. Questions that a machine decides are left out:
their options are intervals that cover every value, in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from autograder.quizzes import Bank, compile_bank
from autograder.quizzes.kinds import Choice

LESSONS = Path(__file__).parents[1] / "notebooks" / "lessons"

_WORDS = {
    "reason": re.compile(r"\b(because|since|so that|as|for)\b|(?<!\d):(?!\d)", re.IGNORECASE),
    "because": re.compile(r"\b(because|since)\b", re.IGNORECASE),
    "consequence": re.compile(r"\b(so|so that|therefore|hence|which|that)\b", re.IGNORECASE),
    "colon": re.compile(r":"),
    "comma": re.compile(r","),
    "semicolon": re.compile(r";"),
    "code": re.compile(r"`"),
    "number": re.compile(r"\d"),
    "symbol": re.compile(r"[%×√/±=]"),
    "not": re.compile(
        r"\b(not|no|never|none|neither|nobody|nor|without|cannot|\w+n't|only|alone)\b", re.IGNORECASE
    ),
    "nothing": re.compile(r"^(nothing|none|neither|no|never|all is well)\b", re.IGNORECASE),
    "absolute": re.compile(r"\b(all|always|every|each|any|everything|whatever|everywhere)\b", re.IGNORECASE),
    "hedge": re.compile(
        r"\b(about|nearly|may|might|can|at most|at least|at best|or more|likely|here|yet|hardly|most|mostly|too)\b",
        re.IGNORECASE,
    ),
    "more": re.compile(r"\b(more|less|\w+er|than|larger|smaller)\b", re.IGNORECASE),
    "and": re.compile(r"\b(and|then|but|or)\b", re.IGNORECASE),
    "once": re.compile(r"\b(once|first|own|after|before|until|behind)\b", re.IGNORECASE),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of one question, as who reads nothing else sees them, and the place of the right one."""

    id: str
    texts: tuple[str, ...]
    stem: str
    key: int

    @property
    def chance(self) -> float:
        """Of a guess."""
        return 1.0 / len(self.texts)


def banks() -> dict[str, list[Asked]]:
    """All questions with a key, by bank."""
    texts = sorted(LESSONS.glob("[0-9][0-9]_quiz.toml"))
    return {text.name[:2]: _asked(compile_bank(text)) for text in texts}


def by_rule(asked: Asked) -> float:
    """Chance to find the key: not the longest, nothing with "because", nothing that begins with "Nothing"."""
    longest = max(len(text) for text in asked.texts)
    left = [
        place
        for place, text in enumerate(asked.texts)
        if len(text) < longest and not _WORDS["because"].search(text) and not _WORDS["nothing"].search(text)
    ]
    left = left or list(range(len(asked.texts)))
    return (asked.key in left) / len(left)


def by_model(known: Sequence[Asked], asked: Sequence[Asked]) -> NDArray[np.float64]:
    """Whether a model of the form of `known` finds each key of `asked`: 0 or 1 each."""
    rows = np.concatenate([_features(one) for one in known])
    right = np.concatenate([np.arange(len(one.texts)) == one.key for one in known])
    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=0.1, class_weight="balanced").fit(scaler.transform(rows), right)
    found = [model.decision_function(scaler.transform(_features(one))).argmax() == one.key for one in asked]
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of the keys of a bank, the share that is found by chance, by the rule, and by the model of all other banks."""

    chance: float
    rule: float
    model: float


def shares(by_bank: dict[str, list[Asked]]) -> dict[str, Shares]:
    """By bank."""
    told = {}
    for name, asked in by_bank.items():
        known = [one for other, all_of_it in by_bank.items() if other != name for one in all_of_it]
        told[name] = Shares(
            chance=float(np.mean([one.chance for one in asked])),
            rule=float(np.mean([by_rule(one) for one in asked])),
            model=float(by_model(known, asked).mean()),
        )
    return told


def _asked(bank: Bank) -> list[Asked]:
    keyed = [question for question in bank.all_questions if isinstance(question, Choice) and question.key]
    return [
        Asked(
            id=question.id,
            texts=tuple(option.text for option in question.options),
            stem=question.text,
            key=[option.id for option in question.options].index(str(question.key)),
        )
        for question in keyed
    ]


def _features(asked: Asked) -> NDArray[np.float64]:
    """A row for each option, as it differs from the others of its question."""
    texts = asked.texts
    words = [_content(text) for text in texts]
    stem = _content(asked.stem)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    columns: list[Sequence[float] | NDArray[np.float64]] = [
        lengths / lengths.mean(),
        (lengths == lengths.max()).astype(np.float64),
        (lengths == lengths.min()).astype(np.float64),
        lengths.argsort().argsort().astype(np.float64),
        [len(found & stem) / max(1, len(found)) for found in words],
        [_likeness(found, [other for other in words if other is not found]) for found in words],
        [float(np.mean([len(word) for word in text.split()])) for text in texts],
    ]
    columns += [[bool(pattern.search(text)) for text in texts] for pattern in _WORDS.values()]
    columns += _numbers(texts)
    table = np.array(columns, dtype=np.float64).T
    return table - table.mean(axis=0)


def _numbers(texts: Sequence[str]) -> list[list[float]]:
    """Of each option's first number: is it the smallest, the largest of all, or between."""
    first = [
        float(found[0].replace(",", "")) if (found := re.findall(r"\d[\d,]*\.?\d*", text)) else None
        for text in texts
    ]
    told = [number for number in first if number is not None]
    return [
        [len(told) > 2 and number == min(told) for number in first],
        [len(told) > 2 and number == max(told) for number in first],
        [len(told) > 2 and number is not None and min(told) < number < max(told) for number in first],
    ]


def _content(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def _likeness(words: set[str], others: Sequence[set[str]]) -> float:
    return float(np.mean([len(words & other) / max(1, len(words | other)) for other in others]))


def main() -> None:
    """Print the table."""
    by_bank = banks()
    print(f"{'bank':6}{'questions':>10}{'chance':>8}{'rule':>8}{'model':>8}")
    for name, told in shares(by_bank).items():
        print(f"{name:6}{len(by_bank[name]):>10}{told.chance:>8.0%}{told.rule:>8.0%}{told.model:>8.0%}")


if __name__ == "__main__":
    main()
