"""How good a trained run is on a table it has not seen: scores, calibration, slices, and the costliest errors."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError, progress_bar
from course_lib.runs.checks import FRAME
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.using.classes import ClassJudge, NextTokenJudge
from course_lib.runs.using.judging import Judge, LabelledRow
from course_lib.runs.using.predict import Predictor, load_trained
from course_lib.runs.using.rows import LabelledTable, open_for_run
from course_lib.runs.using.several import LabelsJudge, NumberJudge


def evaluate_run(
    run_folder: str | Path,
    data: Any = None,
    *,
    weights: str = "best",
    slices: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Judge the `best` or the `last` weights of a run on a table; the answer is made of JSON values.

    Args:
        data: a path or a frame, as `load_table` takes it; None: the run's `test_data`.
        slices: columns by whose values the scores are told apart, beside the length of the text.
        settings: `text_column`, `label_column`, `encoding`, `has_header` of this table, where they are not those of
            the run and cannot be found.
        progress: draw a progress bar on stderr when it takes longer than two seconds.

    Returns:
        `run`, `weights`, `step`, `data`, `task`, `columns`, `num_rows`, `length_unit`, `notes`, and by task:
        `scores`, with `num_items` and, for texts, the 95 % interval of what was right;
        `baseline`, what always the same answer would reach; `per_class`, `confusion` (None for many labels),
        `confused`, the most frequent errors; `calibration` (`calibration.calibration`); `slices`, name → rows;
        `errors`, the costliest first, with the rows' numbers; `unknown_labels`, which count as errors.

    Raises:
        UserError: there is no run, no table, no column with texts or labels, no row that can be judged, or none
            whose label the run knows.
    """
    folder = RunFolder(run_folder)
    trained = load_trained(run_folder, weights=weights)
    config = trained.config
    source = data if data is not None else config.test_data
    if source is None or (data is None and source == FRAME):
        raise UserError(f"there is nothing to judge {folder.directory} on: add --data test.csv")
    has_labels = config.task != "language-modelling"
    table, columns = open_for_run(folder, config, source, settings=settings, with_labels=has_labels)
    rows = LabelledTable(table, columns, config.task, slices)
    predictor = Predictor(trained)
    judge = make_judge(config.task, trained.label_names)
    bar = progress_bar(rows, "Judging", unit="row", delay=2, disable=not progress)
    num_rows = _judge_all(judge, predictor, bar)
    names = {"text": columns.text} | ({} if columns.label is None else {"label": columns.label})
    if not num_rows:
        wanted = " and a ".join(table.columns[i] for i in names.values())
        raise UserError(f"{table.name}: no row has a {wanted}. {'; '.join(rows.notes)}")
    found = judge.sections(slices)
    _refuse_foreign_labels(found, table.name, trained.label_names)
    about = {
        "run": str(folder.directory),
        "weights": weights,
        "step": trained.step,
        "data": table.name,
        "task": config.task,
        "columns": {what: table.columns[i] for what, i in names.items()},
        "num_rows": num_rows,
        "length_unit": "n-grams" if config.model in ("ngrams", "joined") else "tokens",
    }
    return about | {"notes": [*_seen(source, config), *rows.notes, *_notes(found)]} | found


def make_judge(task: str, label_names: Sequence[str]) -> Judge:
    """What judges the answers of a task."""
    if task == "multi-label":
        return LabelsJudge(label_names)
    if task == "regression":
        return NumberJudge()
    if task == "language-modelling":
        return NextTokenJudge()
    return ClassJudge(label_names, is_words=task == "token-classification")


def _judge_all(judge: Judge, predictor: Predictor, rows: Iterable[LabelledRow]) -> int:
    waiting: deque[LabelledRow] = deque()  # as many as the predictor takes at once

    def texts() -> Iterator[Any]:
        for row in rows:
            waiting.append(row)
            yield row.text

    num_rows = 0
    for _, encoding, said in predictor.read(texts(), getattr(judge, "read", None)):
        num_rows += 1
        judge.add(waiting.popleft(), len(encoding.ids), said)
    return num_rows


def _refuse_foreign_labels(found: Mapping[str, Any], table: str, label_names: Sequence[str]) -> None:
    unknown, known = found.get("unknown_labels"), found.get("per_class") or ()
    if unknown and not any(row["num_samples"] for row in known if row["label"] in label_names):
        theirs, ours = (", ".join(map(repr, [*names][:3])) for names in (unknown, label_names))
        raise UserError(
            f"{table}: none of its labels ({theirs} …) is one of the run's ({ours} …): is that the right column? "
            "Name another with label_column=…"
        )


def _seen(source: Any, config: TrainConfig) -> list[str]:
    """A warning where the table is the one that the run was trained on."""
    with contextlib.suppress(OSError, TypeError):  # the built-in data, a frame, a table that has moved
        if Path(config.data).expanduser().samefile(Path(source).expanduser()):
            return ["the run was trained on this very table: its scores here say nothing about other texts"]
    return []


def _notes(found: Mapping[str, Any]) -> list[str]:
    notes = []
    if unknown := found.get("unknown_labels"):
        first = next(iter(unknown))
        notes.append(
            f"{sum(unknown.values())} items have labels that the run was not trained on, which count as errors: "
            f"{len(unknown)} of them, the first {first!r}"
        )
    if found.get("num_cut"):
        notes.append(f"{found['num_cut']} words stand beyond max_length and are not judged")
    return notes
