"""How well a task is done: scores of classes, of several labels, of numbers; and the losses of the last two."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.training.scores.classes import (
        MAX_MATRIX_LABELS,
        classification_table,
        confused_pairs,
        confusion_matrix,
        length_slices,
        macro_f1,
        perplexity,
    )
    from course_lib.training.scores.summary import evaluation_summary
    from course_lib.training.scores.targets import Judged, TaskLoss, task_loss

__getattr__, __dir__, __all__ = attach(__name__, __file__)
