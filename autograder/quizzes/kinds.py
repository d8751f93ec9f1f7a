"""The kinds of answers that a question takes: all that depends on the kind stands here, and its buttons in `widget`.

`Choice` has options with one right letter. `Measured` has options with an interval each, and right is
the one that holds what this machine measures. A new kind is another subclass of `Question`, and a line in `kind_of`.
"""

from __future__ import annotations

import importlib
import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self

from autograder.quizzes.question import Judgement, Luck, Question, Table, check_keys, seal, unseal
from autograder.show import plain
from course_lib.base import UserError


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option by its letter; of a measured question it is right for `low ≤ value < high`."""

    id: str
    text: str
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def from_dict(cls, table: Table) -> Option:
        """What `to_dict` made, or an author's with its letter."""
        return cls(**{name: table[name] for name in ("id", "text", "low", "high") if name in table})

    def to_dict(self) -> Table:
        """As it stands in a file: an open end is left out."""
        return {name: value for name, value in asdict(self).items() if value not in (-math.inf, math.inf)}


@dataclass(frozen=True, kw_only=True)
class Why:
    """What is said of an option: the mistake behind it ("" if it is right), and the reason."""

    mistake: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Secret:
    """What is sealed of a question with options. `explain` is said of a measured one, whatever was chosen."""

    key: str | None
    explain: str
    options: dict[str, Why]

    def sealed(self, question_id: str) -> str:
        """Lightly hidden."""
        return seal(question_id, asdict(self))


@dataclass(frozen=True, kw_only=True)
class Choice(Question):
    """One of the options is right, whatever the machine."""

    NEEDED = "option"
    FREE = "measured unit slack explain"

    options: tuple[Option, ...]

    @classmethod
    def compiled(cls, where: str, table: Table) -> Self:
        options = dict(zip(string.ascii_lowercase, table["option"], strict=False))
        if not 3 <= len(options) <= 6:
            raise UserError(f"{where}: give three to six options")
        if len({option.get("text", "").strip() for option in options.values()}) != len(options):
            raise UserError(f"{where}: two options read the same")
        for letter, option in options.items():
            cls._check_option(f"{where}, option {letter}", option)
        lettered = [
            option | {"id": letter, "text": option["text"].strip()} for letter, option in options.items()
        ]
        about = {
            letter: Why(mistake=option.get("mistake", ""), reason=option["reason"].strip())
            for letter, option in options.items()
        }
        key = cls._key_of(where, options)
        secret = Secret(key=key, explain=table.get("explain", "").strip(), options=about)
        return cls(
            **{name: table[name] for name in ("id", "kind")},
            text=table["text"].strip(),
            topic=table.get("topic", ""),
            sealed=secret.sealed(table["id"]),
            **cls.fields_of(table | {"options": lettered}),
        )

    @classmethod
    def _check_option(cls, where: str, option: Table) -> None:
        check_keys(where, option, needed="text reason", free="right mistake low high")
        if not option.get("right") and not option.get("mistake"):
            raise UserError(f"{where}: a wrong option needs `mistake`, the name of the mistake behind it")
        if not cls.is_measured and ("low" in option or "high" in option):
            raise UserError(f"{where}: `low` and `high` need a question with `measured`")

    @classmethod
    def _key_of(cls, where: str, options: Table) -> str | None:
        keys = [letter for letter, option in options.items() if option.get("right")]
        if len(keys) != (0 if cls.is_measured else 1):
            raise UserError(f"{where}: mark exactly one option `right = true` (none if it is measured)")
        return keys[0] if keys else None

    @classmethod
    def fields_of(cls, table: Table) -> Table:
        return {"options": tuple(Option.from_dict(option) for option in table["options"])}

    def answers_to_dict(self) -> Table:
        return {"options": [option.to_dict() for option in self.options]}

    def without_key(self) -> Question:
        options = tuple(Option(id=option.id, text=option.text) for option in self.options)
        return Choice(id=self.id, text=self.text, options=options)

    def accepts(self, answer: object) -> bool:
        return answer in self._letters

    def parsed(self, typed: str) -> str:
        letter = typed.strip().lower()
        if letter not in self._letters:
            letters = ", ".join(self._letters)
            raise UserError(f'{self.id} has the options {letters}; for instance answer("{self.id}", "a")')
        return letter

    def words_of(self, answer: str) -> str:
        return self._option(answer).text

    def lines(self, answer: object) -> list[str]:
        return [
            f"  {'(•)' if option.id == answer else '( )'} {option.id}  {plain(option.text)}"
            for option in self.options
        ]

    def judge(self, lesson_id: str, answer: str) -> Judgement:
        secret = self.secret
        return Judgement(is_right=answer == secret.key, **asdict(secret.options[answer]))

    def solution(self, lesson_id: str, answer: str | None) -> str:
        judged = {letter: self.judge(lesson_id, letter) for letter in self._letters}
        if answer and judged[answer].is_right:
            return ""
        letter = next(letter for letter, judgement in judged.items() if judgement.is_right)
        # Why a measured one is right stands in each of its reasons.
        reason = "" if answer and self.is_measured else judged[letter].reason
        return f"Right is **{letter}**. {reason}".strip()

    def as_drawn(self, shown_id: str, luck: Luck) -> Self:
        renamed = dict(zip(self._shuffled(luck), string.ascii_lowercase, strict=False))
        secret = self.secret
        moved = Secret(
            key=secret.key and renamed[secret.key],
            explain=secret.explain,
            options={new: secret.options[old] for old, new in renamed.items()},
        )
        options = tuple(replace(self._option(old), id=new) for old, new in renamed.items())
        return replace(self, id=shown_id, drawn=self.id, options=options, sealed=moved.sealed(shown_id))

    @property
    def key(self) -> str | None:
        return self.secret.key

    @property
    def shown(self) -> list[str]:
        return [self.text, *(option.text for option in self.options)]

    @property
    def reasons(self) -> list[str]:
        secret = self.secret
        return [secret.explain, *(option.reason for option in secret.options.values())]

    @property
    def mistakes(self) -> list[str]:
        return [option.mistake for option in self.secret.options.values()]

    @property
    def secret(self) -> Secret:
        """What is sealed."""
        found = unseal(self.sealed)
        return Secret(
            **found | {"options": {letter: Why(**about) for letter, about in found["options"].items()}}
        )

    @property
    def _letters(self) -> list[str]:
        return [option.id for option in self.options]

    def _option(self, letter: str) -> Option:
        return next(option for option in self.options if option.id == letter)

    def _shuffled(self, luck: Luck) -> list[str]:
        return sorted(self._letters, key=lambda letter: luck("option", self.id, letter))


@dataclass(frozen=True, kw_only=True)
class Measured(Choice):
    """Right is the option that holds what this machine measures.

    Attributes:
        measured: name of the measurement, in the lesson's module of that name.
        unit: of its value; "%" shows a share.
        slack: so near to a limit, a value counts on both sides: machines differ.
    """

    is_measured = True

    measured: str
    unit: str = ""
    slack: float = 0.0

    @classmethod
    def fields_of(cls, table: Table) -> Table:
        own = {"measured": table["measured"], "unit": table.get("unit", ""), "slack": table.get("slack", 0.0)}
        return super().fields_of(table) | own

    def answers_to_dict(self) -> Table:
        return super().answers_to_dict() | {"measured": self.measured, "unit": self.unit, "slack": self.slack}

    @classmethod
    def _key_of(cls, where: str, options: Table) -> str | None:
        """The intervals must follow each other without gap or overlap, the outer ones open."""
        found = [Option.from_dict(option | {"id": letter}) for letter, option in options.items()]
        ordered = sorted(found, key=lambda option: option.low)
        joined = all(one.high == two.low for one, two in itertools.pairwise(ordered))
        if not joined or ordered[0].low != -math.inf or ordered[-1].high != math.inf:
            raise UserError(
                f"{where}: intervals must cover every value once: each `high` is the next one's `low`"
            )
        return super()._key_of(where, options)

    def judge(self, lesson_id: str, answer: str) -> Judgement:
        try:
            value = measure(lesson_id, self.measured)
        except Exception as error:  # whatever stops a measurement is the machine's fault, never the learner's
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            reason = f"This machine could not take the measurement ({said}), so any answer counts."
            return Judgement(is_right=True, reason=reason, measured="not measured")
        option, secret = self._option(answer), self.secret
        is_right = option.low - self.slack <= value < option.high + self.slack
        shown = f"{value:.0%}" if self.unit == "%" else f"{value:.3g}{self.unit}"
        # An option may be right on one machine and wrong on the next: its own reason says why it is wrong.
        own = secret.options[answer]
        mistake, reason = ("", "") if is_right else (own.mistake, f"{own.reason} ")
        return Judgement(is_right=is_right, mistake=mistake, reason=reason + secret.explain, measured=shown)

    def _shuffled(self, luck: Luck) -> list[str]:
        return self._letters  # intervals stay in the order of their numbers


def kind_of(table: Table) -> type[Question]:
    """The kind of answer that a question asks for, as its author wrote it or as it is shipped."""
    return Measured if "measured" in table else Choice


def read_question(table: Table) -> Question:
    """The question in a file. Raises KeyError or TypeError where it is none."""
    return kind_of(table).from_dict(table)


def check_tells(name: str, questions: Sequence[Question]) -> None:
    """Refuse a quiz that can be passed without thinking: by position, or by the longest option. Raises UserError."""
    keyed = [(question, question.secret.key) for question in questions if type(question) is Choice]
    if len(keyed) < 3:
        return
    letters = [str(key) for _, key in keyed]
    if max(letters.count(letter) for letter in letters) > math.ceil(len(letters) / 2):
        raise UserError(f"{name}: the right option is too often at the same place ({' '.join(letters)})")
    longest = [
        key == max(question.options, key=lambda option: len(option.text)).id for question, key in keyed
    ]
    if sum(longest) > len(longest) / 2:
        raise UserError(f"{name}: the longest option is right in {sum(longest)} of {len(longest)} questions")


def measure(lesson_id: str, name: str) -> float:
    """A lesson's measurement by name, taken on this machine."""
    module = importlib.import_module(f"autograder.lessons.lesson_{lesson_id}.measured")
    value = float(module.MEASUREMENTS[name]())
    if not math.isfinite(value):
        raise ValueError(f"{name} gave {value}")
    return value
