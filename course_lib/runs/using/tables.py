"""Tables in, tables out: every row and column as it was, and what a run says of the text beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.data.tables import Row, Table, cells
from course_lib.runs.folder import RunFolder
from course_lib.runs.using.answers import Answer
from course_lib.runs.using.predict import Predictor, load_trained
from course_lib.runs.using.rows import open_for_run


def predict_table(
    run_folder: str | Path,
    source: Any,
    *,
    weights: str = "best",
    settings: Mapping[str, Any] | None = None,
    top_k: int | None = None,
    every: bool = False,
) -> Predicted:
    """What a run says of each row of a table: a path or a frame, as `load_table` takes it.

    `settings`: `text_column`, `encoding`, `has_header`, where they are not those of the run and cannot be found;
    `top_k`: so many labels, the most probable first; `every`: the probability of each label. Raises UserError when
    there is no run, no table or no column with texts, or the task has no such answer; while the rows are read, for a
    row that cannot be.
    """
    trained = load_trained(run_folder, weights=weights)
    table, columns = open_for_run(RunFolder(run_folder), trained.config, source, settings=settings)
    notes = [*table.notes, *columns.notes]
    return Predicted(Predictor(trained), table, columns.text, notes, top_k=top_k, every=every)


def predict_texts(
    run_folder: str | Path,
    texts: Iterable[str],
    *,
    weights: str = "best",
    top_k: int | None = None,
    every: bool = False,
) -> Predicted:
    """The same for texts, which become a table of the one column `text`; they are iterated once."""

    def read(_: Sequence[int] | None) -> Iterator[Row]:
        return ((number, [text]) for number, text in enumerate(texts, 1))

    predictor = Predictor.load(run_folder, weights=weights)
    return Predicted(predictor, Table("the texts", ["text"], read), 0, [], top_k=top_k, every=every)


class Predicted:
    """A table with answers: iterate over it once for its rows, lists as long as `columns`.

    Attributes:
        columns: those of the table, then those of the answers: `label` and `probability` (for a number `prediction`);
            the second most probable label and so on; a probability for each label. One that the table has already is
            called `predicted_label` …
        table, text: what is read, and the position of the column with the texts.
        notes: what was found and not named, one sentence each.
        is_ranked: whether an answer is one of several labels, more or less probable.
        num_blank: rows so far whose text is blank; the run answers them as it answers no words at all.
    """

    def __init__(
        self,
        predictor: Predictor,
        table: Table,
        text: int,
        notes: Sequence[str],
        *,
        top_k: int | None = None,
        every: bool = False,
    ) -> None:
        self.predictor, self.table, self.text, self.notes = predictor, table, text, notes
        self._parts = _parts(predictor, top_k, every)
        taken = {name.strip().casefold() for name in table.columns}
        self.columns = [*table.columns, *(_free(name, taken) for name in self._parts)]
        self.is_ranked = predictor.task in ("classification", "language-modelling") or bool(top_k or every)
        self.num_blank = 0

    def __iter__(self) -> Iterator[list[Any]]:
        for values, answer in self.answered():
            yield [*values, *(part(answer) for part in self._parts.values())]

    def answered(self) -> Iterator[tuple[list[Any], Answer]]:
        """Each row of the table, and the answer."""
        waiting: deque[list[Any]] = deque()  # as many as the predictor takes at once

        def texts() -> Iterator[Any]:
            for number, values in self.table.rows():
                text = self._text_of(values[self.text], number)
                self.num_blank += not (text if isinstance(text, list) else text.strip())
                waiting.append(values)
                yield text

        for answer in self.predictor.answers(texts()):
            yield waiting.popleft(), answer

    def _text_of(self, value: Any, number: int) -> Any:
        try:
            words = cells.as_list(value) if self.predictor.task == "token-classification" else None
            if words is None:
                return cells.text(value, number)
            return [cells.text(word, number) for word in words]
        except UserError as error:
            raise UserError(f"{self.table.name}: {error}") from None


def _parts(predictor: Predictor, top_k: int | None, every: bool) -> dict[str, Callable[[Answer], Any]]:
    """Names of the columns to add, and what stands in them."""
    task, names = predictor.task, predictor.label_names
    if (top_k or every) and task in ("regression", "token-classification"):
        raise UserError(f"task={task} has no ranking of labels: leave --top-k and --all out")
    if every and task == "language-modelling":
        raise UserError(
            "language-modelling has a probability for each token of its vocabulary: take --top-k 10"
        )
    if task == "regression":
        return {"prediction": lambda answer: answer.label}
    parts: dict[str, Callable[[Answer], Any]] = {
        "label": lambda answer: answer.labels if task == "multi-label" else answer.label,
        "probability": lambda answer: answer.probability,
    }
    first = 1 if task == "multi-label" else 2  # its labels are not the most probable one
    for k in range(first, (top_k or first - 1) + 1):
        if task == "language-modelling" or k <= len(names):
            parts |= {f"label_{k}": _ranked(k, 0), f"probability_{k}": _ranked(k, 1)}
    for i, name in enumerate(names if every else ()):
        parts[f"probability of {name}"] = _score(i)
    return parts


def _ranked(k: int, part: int) -> Callable[[Answer], Any]:
    return lambda answer: answer.top(k)[-1][part]


def _score(number: int) -> Callable[[Answer], Any]:
    return lambda answer: float(answer.scores[number])


def _free(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name = f"predicted_{name}"
    taken.add(name.casefold())
    return name
