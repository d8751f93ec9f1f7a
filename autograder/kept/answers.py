"""The learner's answers: a JSON file beside the notebook, saved at every choice and never torn.

    {"format": 1, "lesson": "01", "answers": {"01.3": {"choice": "b", …}, "predict:1a": {"value": 2.5, …}}}

The file travels with a submission. It is replaced whole and changed under a lock, so that two kernels lose nothing of
each other's and a kernel killed while writing leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.common import locked
from autograder.show import in_kernel
from course_lib.base import UserError, atomic_write_text

MAX_BYTES = 5_000_000  # a whole lesson's answers are a few kilobytes; a submission's file is never trusted
_MAX_NAME = 20  # characters of what a file says of itself
_OF_LESSON = re.compile(r"(?:[a-z_]+:)?(\d{1,2})(?:\.|[a-z]|$)")  # "01.3", "09.1.3", "predict:1a"
Entry = dict[str, Any]  # of the file, which may be of a later version or of a forger


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question of a quiz: the last choice counts, the first and the number of tries are kept beside it.

    What a submission's file says may be anything: `choice` and `first` are compared, never used.
    """

    choice: Any = None
    first: Any = None
    tries: int = 0

    @classmethod
    def from_entry(cls, entry: object) -> Answer:
        """Of an entry of the file, or of the letter alone."""
        if not isinstance(entry, dict):
            return cls(choice=entry)
        tries = entry.get("tries")
        kept = {name: entry.get(name) for name in ("choice", "first")}
        return cls(**kept, tries=tries if isinstance(tries, int) else 0)

    def to_entry(self) -> Entry:
        """As it is kept."""
        return asdict(self)

    def then(self, choice: str) -> Answer:
        """With another choice; the same one again is no try."""
        first = choice if self.first is None else self.first
        return Answer(choice=choice, first=first, tries=self.tries + (self.choice != choice))


class AnswersFile:
    """The answers of one lesson in one folder.

    Attributes:
        path: the file.
        notices: lines that the learner must see, such as a damaged file that was set aside.
    """

    def __init__(self, path: Path | str, lesson_id: str) -> None:
        self.path = Path(path)
        self.lesson_id = lesson_id
        self.notices: list[str] = []

    def entries(self) -> dict[str, Entry]:
        """All answers by key. A damaged file is set aside, with a notice, and counts as empty."""
        try:
            return _parse(self.path)
        except _DamagedError:
            try:
                with locked(self.path):
                    return self._load()
            except OSError as error:
                self.notices.append(f"{self.path.name} is damaged and could not be set aside ({error}).")
                return {}

    def save(self, key: str, entry: Entry | Callable[[Entry], Entry]) -> None:
        """Write one answer; other answers in the file stay, whoever wrote them.

        Args:
            entry: the new value, or a function of the old one (`{}` if there is none).

        Raises:
            UserError: the file could not be written, and why. What it held before is still there.
        """
        try:
            with locked(self.path):
                entries = self._load()
                saved = entry(entries.get(key, {})) if callable(entry) else entry
                entries[key] = saved | {"at": datetime.now(UTC).isoformat(timespec="seconds")}
                document = {"format": 1, "lesson": self.lesson_id, "answers": entries}
                self.path.parent.stat()  # a folder that is gone is not made anew
                text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
                atomic_write_text(self.path, f"{text}\n")
        except (OSError, UserError) as error:
            raise UserError(f"not saved: {self.path}: {_why(error)}") from None

    def take_notices(self) -> str:
        """The notices so far as one text; each is given out once."""
        text, self.notices = "\n".join(self.notices), []
        return text

    def print_notices(self) -> None:
        """Print the notices so far."""
        if text := self.take_notices():
            print(text)

    def _load(self) -> dict[str, Entry]:
        """The answers, with a damaged file renamed. Call it under the lock."""
        try:
            return _parse(self.path)
        except _DamagedError as damage:
            aside = self.path.with_name(f"{self.path.stem}.damaged-{datetime.now():%Y%m%d-%H%M%S-%f}.json")
            self.path.rename(aside)
            self.notices.append(
                f"{self.path.name} could not be read ({damage}); it is kept as {aside.name}, a new one begins."
            )
            return {}


class _DamagedError(Exception):
    pass


def answers_file(lesson_id: str) -> AnswersFile:
    """The answers of a lesson beside its notebook, wherever a cell has gone since; without a kernel in the current
    folder."""
    from autograder.course import load_lesson

    try:
        folder = _FOLDER or Path.cwd()
        folder.stat()
        return AnswersFile(folder / f"{load_lesson(lesson_id).slug}_answers.json", lesson_id)
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
    except FileNotFoundError:
        raise UserError(
            "the notebook's folder is gone: save the notebook elsewhere and open it there"
        ) from None


def _notebooks_folder() -> Path | None:
    """Where the notebook of this kernel lies; None without a kernel.

    Asked once, as a notebook imports: a later `os.chdir` or `%cd` is for the learner's own files. VS Code says which
    notebook it is. A server of Jupyter starts the kernel beside it, and all others go there before the first cell.
    """
    if not in_kernel():
        return None
    shell = sys.modules["IPython"].get_ipython()
    said = shell.user_ns.get("__vsc_ipynb_file__")
    if isinstance(said, str) and Path(said).is_absolute() and Path(said).parent.is_dir():
        return Path(said).parent
    began = shell.starting_dir if "JPY_SESSION_NAME" in os.environ else ""
    with contextlib.suppress(OSError):
        return Path(began) if Path(began).is_absolute() else Path.cwd()
    return None


_FOLDER = _notebooks_folder()


def lesson_of_answers(path: Path, answers: Mapping[str, Any]) -> str:
    """The lesson that a file of answers is of: that of most of its answers, else what it says itself; "" for none.

    Args:
        answers: as `read_answers` gives them.
    """
    numbers = Counter(match[1].zfill(2) for key in answers if (match := _OF_LESSON.match(key)))
    if numbers:
        return numbers.most_common(1)[0][0]
    with contextlib.suppress(_DamagedError):
        return str(_document(path).get("lesson", ""))[:_MAX_NAME]
    return ""


def read_answers(path: Path | str) -> dict[str, Any]:
    """The answers in a file by key, for grading: nothing is changed, and nothing in the file can raise.

    A file that is missing or damaged gives no answers; when it is damaged, the key "problem" says how.
    """
    try:
        # A link could lead to another learner's file, and a pipe or a device has no end.
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise _DamagedError("it is a link or a device and no file")
        entries = _parse(Path(path))
        entries.pop("problem", None)  # what is wrong with a file, it does not say itself
        return dict(entries)
    except _DamagedError as damage:
        return {"problem": f"the answers file could not be read ({damage})"}


def _parse(path: Path) -> dict[str, Entry]:
    """Read and validate. Entries of a kind that this version does not know stay."""
    entries = _document(path).get("answers")
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise _DamagedError("it holds no answers in the form this course writes")
    return entries


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _DamagedError(f"larger than {MAX_BYTES // 1_000_000} MB")
        document = _json(path.read_bytes())
    except FileNotFoundError:
        return {"answers": {}}
    except OSError as error:
        raise _DamagedError(error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _DamagedError("not JSON") from error
    if not isinstance(document, dict):
        raise _DamagedError("it holds no answers in the form this course writes")
    return document


def _json(data: bytes) -> Any:
    """The course writes UTF-8; an editor may have made UTF-16 or 32 of it, a mark before it, or an old code page."""
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return json.loads(data.decode("cp1252", "replace"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")  # NaN and the infinities


_FIXES = {
    errno.ENOSPC: "the disk is full; free some space and answer again",
    errno.EDQUOT: "your disk quota is used up; free some space and answer again",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "its folder cannot be written to; make it writable or copy the notebook to a folder of yours",
    ),
}


def _why(error: Exception) -> str:
    reason = error if isinstance(error, OSError) else error.__cause__
    if isinstance(reason, TimeoutError):
        return "another program keeps it locked; try again, or restart other kernels"
    assert isinstance(reason, OSError)
    return _FIXES.get(reason.errno or 0, reason.strerror or str(reason))
