"""What every question has, and what each kind of answer (`kinds`) must say about itself.

Keys and reasons are shipped only lightly hidden: enough to keep a glance at the file from giving them away.
"""

from __future__ import annotations

import base64
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from course_lib.base import UserError

Table = dict[str, Any]  # of a file, as JSON and TOML give it
Luck = Callable[..., bytes]  # what sorts by it is shuffled
_SHARED = (
    "kind",
    "topic",
    "sealed",
    "lesson",
    "drawn",
)  # what else a file says of every question, unless empty


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What one choice is worth.

    Attributes:
        is_right: whether it counts as right.
        mistake: name of the mistake behind a wrong option.
        reason: why, for the learner.
        measured: what this machine measured, as text; empty for questions that measure nothing.
    """

    is_right: bool
    mistake: str = ""
    reason: str = ""
    measured: str = ""


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A question as it is asked.

    Attributes:
        id: "01.3"; of a second form "01.3b"; on the paper of an exam "09.1.3".
        text: with `code`, **bold** and ``` blocks.
        kind: what it exercises: diagnose, bug, estimate, interpret.
        topic: what to read again, of an exam's question.
        lesson: that an exam's question is about.
        drawn: on the paper of an exam, the id that the question has in the bank.
        sealed: what is right and why; empty where only the instructor knows.
    """

    NEEDED: ClassVar[str]
    """What the author's text of this kind must say beside id, kind and text."""
    FREE: ClassVar[str]
    """What it may say besides."""
    is_measured: ClassVar[bool] = False

    id: str
    text: str
    kind: str = ""
    topic: str = ""
    lesson: str = ""
    drawn: str = ""
    sealed: str = ""

    @classmethod
    def from_dict(cls, table: Table) -> Self:
        """What `to_dict` made. Raises KeyError or TypeError where it is something else."""
        head = {"id": table["id"], "text": table["text"]}
        return cls(**head, **{name: table.get(name, "") for name in _SHARED}, **cls.fields_of(table))

    def to_dict(self) -> Table:
        """As it stands in a file."""
        table = {"id": self.id, "kind": self.kind, "text": self.text, **self.answers_to_dict()}
        table |= {name: getattr(self, name) for name in _SHARED if name != "kind"}
        return {
            name: value for name, value in table.items() if name in ("id", "text") or value not in ("", 0.0)
        }

    @classmethod
    @abstractmethod
    def compiled(cls, where: str, table: Table) -> Self:
        """The question of an author's text. Raises UserError where the text is not good enough, naming `where`."""

    @classmethod
    @abstractmethod
    def fields_of(cls, table: Table) -> Table:
        """The fields that this kind has beside those of every question, from a file."""

    @abstractmethod
    def answers_to_dict(self) -> Table:
        """The same for a file."""

    @abstractmethod
    def without_key(self) -> Question:
        """What a graded release holds of it."""

    @abstractmethod
    def accepts(self, answer: object) -> bool:
        """Whether it is an answer to this question, as answers are kept."""

    @abstractmethod
    def parsed(self, typed: str) -> str:
        """An answer as somebody typed it, in the form in which it is kept. Raises UserError where it is none."""

    @abstractmethod
    def words_of(self, answer: str) -> str:
        """What an answer says."""

    @abstractmethod
    def lines(self, answer: object) -> list[str]:
        """What can be answered, as text, with what was answered marked."""

    @abstractmethod
    def judge(self, lesson_id: str, answer: str) -> Judgement:
        """Whether an answer is right, and the reason to show. Takes the measurement if the question is measured."""

    @abstractmethod
    def solution(self, lesson_id: str, answer: str | None) -> str:
        """What would have been right, and why; "" if `answer` is. For an exam that is handed in."""

    @abstractmethod
    def as_drawn(self, shown_id: str, luck: Luck) -> Self:
        """The question with its number on the paper of an exam, its options in another order and lettered anew."""

    @property
    @abstractmethod
    def key(self) -> str | None:
        """The right answer; None where a machine decides."""

    @property
    @abstractmethod
    def shown(self) -> list[str]:
        """All that everybody reads."""

    @property
    @abstractmethod
    def reasons(self) -> list[str]:
        """What is sealed, but for the key: why an answer is right or wrong."""

    @property
    @abstractmethod
    def mistakes(self) -> list[str]:
        """The names of the mistakes behind wrong answers."""


def seal(question_id: str, secret: Table) -> str:
    """Lightly hidden: base64 of salted JSON."""
    salt = hashlib.sha256(question_id.encode()).hexdigest()[:12]
    text = salt + json.dumps(secret, ensure_ascii=False, sort_keys=True)
    return base64.b64encode(text.encode()).decode("ascii")


def unseal(sealed: str) -> Table:
    """What was sealed."""
    secret: Table = json.loads(base64.b64decode(sealed).decode()[12:])
    return secret


def check_keys(where: str, table: Table, *, needed: str, free: str = "") -> None:
    """Refuse a table of an author's text that lacks a key or has one that nobody reads. Raises UserError."""
    known = [*needed.split(), *free.split()]
    if missing := [key for key in needed.split() if key not in table]:
        raise UserError(f"{where}: `{missing[0]}` is missing")
    if unknown := [key for key in table if key not in known]:
        raise UserError(f"{where}: `{unknown[0]}` is not known; it takes {', '.join(known)}")
