"""The rows of a table as a run reads them: by its own columns where the table has them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course_lib.base import UserError
from course_lib.data.tables import Columns, Table, cells, find_columns, make_labels, open_table
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.using.judging import LabelledRow


def open_for_run(
    folder: RunFolder,
    config: TrainConfig,
    source: Any,
    *,
    settings: Mapping[str, Any] | None = None,
    with_labels: bool = False,
) -> tuple[Table, Columns]:
    """A table, and which of its columns hold texts (and labels).

    `settings` (`text_column`, `label_column`, `encoding`, `has_header`) win over the config; a column that is named in
    neither is the one that the run was trained on, where the table has one of its name, else found and said in the
    notes of the columns. Raises UserError as `open_table` and `find_columns` do.
    """
    settings = dict(settings or {})
    trained_on = (folder.read_record().get("data") or {}).get("columns") or {}
    usual = {"text_column": trained_on.get("text"), "label_column": trained_on.get("label")}
    usual = {key: settings.get(key) or getattr(config, key) or name for key, name in usual.items()}
    known = [name for name in usual.values() if name]
    table = _open(source, settings, config, known)
    there = {name.strip().casefold() for name in table.columns}
    names = {
        key: name
        for key, name in usual.items()
        if name and (key in settings or name.strip().casefold() in there)
    }
    task = config.task if with_labels else "language-modelling"
    if not with_labels:
        names.pop("label_column", None)
    try:
        return table, find_columns(table, table.sample(), task=task, **names)
    except UserError as error:
        raise UserError(f"{table.name}: {str(error).removeprefix(f'{table.name}: ')}") from None


def _open(source: Any, settings: Mapping[str, Any], config: TrainConfig, known: Sequence[str]) -> Table:
    has_header = settings.get("has_header", config.has_header)
    if config.encoding and "encoding" not in settings:
        # That of the table that was trained on. Few texts of another encoding are UTF-8 by chance.
        with contextlib.suppress(UserError):
            return open_table(source, encoding="utf-8", has_header=has_header, known=known)
    encoding = settings.get("encoding", config.encoding)
    return open_table(source, encoding=encoding, has_header=has_header, known=known)


def positions(table: Table, names: Sequence[str]) -> list[int]:
    """Where the columns of these names are. Raises UserError for one that is missing or doubled."""
    for name in names:
        if table.columns.count(name) != 1:
            found = ", ".join(map(repr, table.columns[:10]))
            raise UserError(f"{table.name}: there must be one column {name!r}, found: {found}")
    return [table.columns.index(name) for name in names]


class LabelledTable:
    """The rows of a table that can be judged: those with a text and a label. `notes`, once all have been read, says
    which were left out."""

    def __init__(self, table: Table, columns: Columns, task: str, slices: Sequence[str] = ()) -> None:
        self.table, self.columns, self.task = table, columns, task
        self.slices = positions(table, slices)
        sample = [] if columns.label is None else [values[columns.label] for _, values in table.sample()]
        self.parse_label = make_labels(task, sample, None).parse
        self.left_out: dict[str, list[int]] = defaultdict(list)

    def __iter__(self) -> Iterator[LabelledRow]:
        is_words, text_at, label_at = (
            self.task == "token-classification",
            self.columns.text,
            self.columns.label,
        )
        parse_text = cells.word_list if is_words else cells.one_text
        for number, values in self.table.rows():
            try:
                text = parse_text(values[text_at], number)
                label = None if label_at is None else self.parse_label(values[label_at], number)
                if is_words and text and label and len(text) != len(label):
                    raise UserError(
                        f"row {number} has {len(text)} words and {len(label)} labels: give each word one"
                    )
            except UserError as error:
                raise UserError(f"{self.table.name}: {error}") from None
            if text is None:
                self.left_out["blank texts"].append(number)
            elif label is None and label_at is not None:
                self.left_out["texts without a label"].append(number)
            else:
                yield LabelledRow(number, text, label, tuple(str(values[i] or "") for i in self.slices))

    @property
    def notes(self) -> list[str]:
        left_out = [
            f"{len(rows)} {what} left out, the first: row {rows[0]}" for what, rows in self.left_out.items()
        ]
        return [*self.table.notes, *self.columns.notes, *left_out]
