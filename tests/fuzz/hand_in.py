"""A hand-in as it will lie on the disk, and its JSON, which may hold what `json.dumps` cannot write."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Link:
    """A symbolic link in the place of a file."""

    target: str


@dataclass(frozen=True)
class Pipe:
    """A named pipe in the place of a file: whoever opens it to read waits for ever."""


@dataclass(frozen=True)
class Raw:
    """JSON as it shall stand in the file: a number of 5,000 digits, NaN, a hundred thousand brackets."""

    text: str


@dataclass(kw_only=True)
class HandIn:
    """What one student hands in. Damages change it in place.

    Attributes:
        student, folder: the names of the two folders, `submitted/STUDENT/FOLDER`.
        is_link: target of a link that stands for the second one; "" for a folder.
        files: content by path in the folder; None is an empty folder.
        notebook, answers: names among the `files`, for as long as they are there.
        may_earn: False where nothing in the folder is the student's own work.
    """

    student: str
    folder: str
    is_link: str = ""
    files: dict[str, bytes | Link | Pipe | None] = field(default_factory=dict)
    notebook: str
    answers: str
    may_earn: bool = True

    def bytes_of(self, name: str) -> bytes:
        """The content of a file; empty where there is none."""
        content = self.files.get(name)
        return content if isinstance(content, bytes) else b""

    def edit(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change the JSON of a file: in place, or by what `change` returns. What is no JSON any more stays, and what
        an earlier damage left no place in for this one."""
        with contextlib.suppress(ValueError, RecursionError, TypeError, LookupError, AttributeError):
            value = json.loads(self.bytes_of(name))
            changed = change(value)
            self.files[name] = dumped(value if changed is None else changed).encode()

    def rename(self, old: str, new: str) -> None:
        """Another name for the notebook or the answers file."""
        self.files[new] = self.files.pop(old, b"")
        self.notebook = new if old == self.notebook else self.notebook
        self.answers = new if old == self.answers else self.answers

    def write(self, submitted: Path) -> None:
        """Put it where a collector would."""
        (submitted / self.student).mkdir(parents=True)
        folder = submitted / self.student / self.folder
        if self.is_link:
            folder.symlink_to(self.is_link)
            return
        folder.mkdir()
        for name, content in self.files.items():
            _put(folder, name, content)


def _put(folder: Path, name: str, content: bytes | Link | Pipe | None) -> None:
    """Write one file, going down folder by folder: the whole path may be longer than the system takes in one piece."""
    *parents, last = name.split("/")
    here = os.open(folder, os.O_RDONLY)
    try:
        for parent in parents:
            with contextlib.suppress(FileExistsError):
                os.mkdir(parent, dir_fd=here)
            below = os.open(parent, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        if content is None:
            os.mkdir(last, dir_fd=here)
        elif isinstance(content, Link):
            os.symlink(content.target, last, dir_fd=here)
        elif isinstance(content, Pipe):
            os.mkfifo(last, dir_fd=here)
        else:
            file = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=here)
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
    finally:
        os.close(here)


def dumped(value: Any) -> str:
    """JSON of a value in which `Raw` may stand anywhere."""
    raws: list[str] = []

    def token(raw: object) -> str:
        assert isinstance(raw, Raw), raw
        raws.append(raw.text)
        return f"@raw {len(raws) - 1}@"

    text = json.dumps(value, indent=1, default=token)
    for number, raw in enumerate(raws):
        text = text.replace(f'"@raw {number}@"', raw, 1)
    return text


def rich(notebook: Notebook) -> Notebook:
    """A notebook with every field of nbformat in it: what an editor, a kernel and nbgrader leave behind."""
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    language = {
        "name": "python",
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "pygments_lexer": "ipython3",
    }
    metadata = {
        "kernelspec": spec,
        "language_info": language,
        "orig_nbformat": 4,
        "title": "My course",
        "authors": [{"name": "A. Learner"}],
    }
    data = {"text/plain": ["1"], "image/png": "iVBORw0KGgo=", "application/json": {"a": [1]}}
    times = dict.fromkeys(
        ("iopub.execute_input", "iopub.status.busy", "iopub.status.idle", "shell.execute_reply"),
        "2027-01-01T12:00:00Z",
    )
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
        {"output_type": "display_data", "data": data, "metadata": {"image/png": {"width": 3}}},
        {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 3},
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["ValueError: no"]},
    ]
    marked = {"collapsed": False, "scrolled": "auto", "name": "cell", "tags": ["mine"], "execution": times}
    hidden = {"source_hidden": False, "outputs_hidden": False}
    extra = [
        {
            "cell_type": "code",
            "id": "rich-code",
            "source": ["x = 1\n", "x"],
            "metadata": marked | {"jupyter": hidden},
            "execution_count": 3,
            "outputs": outputs,
        },
        {
            "cell_type": "markdown",
            "id": "rich-text",
            "source": "![pasted](attachment:a.png)",
            "metadata": {"name": "text", "tags": []},
            "attachments": {"a.png": {"image/png": "iVBORw0KGgo="}},
        },
        {
            "cell_type": "raw",
            "id": "rich-raw",
            "source": "raw",
            "metadata": {"format": "text/html"},
            "attachments": {},
        },
    ]
    return notebook | {"metadata": metadata, "cells": [*notebook["cells"], *extra]}


#: A small one: from it the damages know which fields there are.
EXAMPLE = rich(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {
                "cell_type": "code",
                "id": "check-0-1",
                "source": "",
                "execution_count": None,
                "outputs": [],
                "metadata": {
                    "nbgrader": {
                        "grade_id": "check-0-1",
                        "grade": True,
                        "solution": False,
                        "task": False,
                        "locked": True,
                        "points": 1,
                        "schema_version": 3,
                        "cell_type": "code",
                        "checksum": "0" * 32,
                    }
                },
            }
        ],
    }
)
