"""Predict first, then measure: the learner's number, kept, and later shown beside what was measured.

That a prediction was made is graded; how near it came is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from autograder.kept import kept_prediction, parse_number, prediction_file, save_prediction, why_key
from autograder.show import BLUE, plain, render, show_html, show_widget, told
from course_lib.base import UserError


@told()
def predict(name: str, question: str, unit: str = "", value: float | None = None) -> None:
    """Ask for a number before it is measured, and keep it at once beside the notebook.

    Args:
        name: lesson number and a letter, for instance "1a".
        unit: shown behind the number, for instance "×" or "%".
        value: the prediction itself, for working without widgets; `None` shows a number box.
    """
    file = prediction_file(name)
    if value is not None:
        number = parse_number(value, unit)
        save_prediction(file, name, number, unit)
        print(f"{plain(question)}\nYour prediction {_shown(number, unit)} is saved in {file.path.name}")
        return
    kept = kept_prediction(file, name)
    file.print_notices()
    # An exported notebook shows this text, and what was typed later only below, where it is compared.
    state = (
        "Nothing was predicted yet when this cell ran."
        if kept is None
        else f"Your prediction: {_shown(kept, unit)}"
    )

    def build() -> Any:
        from autograder.kernel.predict_widget import predict_box

        return predict_box(name, question, unit, file).widget

    show_widget(build, f'{plain(question)}\n{state}\nWithout a number box: predict("{name}", "…", value=2.5)')


@told()
def predicted(name: str) -> float | None:
    """The number that was predicted under this name, or None."""
    return kept_prediction(prediction_file(name), name)


@told()
def compare(name: str, measured: float, unit: str = "", digits: int = 2, why: str | None = None) -> None:
    """Show the prediction beside the measurement, and ask why they differ.

    Args:
        measured: what was measured, in the unit of the prediction.
        digits: decimal places to show.
        why: your reason, for working without widgets; `None` shows a text box.
    """
    file = prediction_file(name)
    if why is not None:
        file.save(why_key(name), {"text": str(why)})
    kept = kept_prediction(file, name)
    try:
        compared = _compared(kept, float(measured), unit, digits)
    except (TypeError, ValueError):
        raise UserError(
            f'compare("{name}", measured): measured must be one number, got {measured!r:.80}'
        ) from None
    label = "Prediction and measurement"
    show_html(render("compared.html", colour=BLUE, label=label, **asdict(compared)), str(compared))

    def build() -> Any:
        from autograder.kernel.predict_widget import why_box

        return why_box(name, file).widget

    if why is not None:
        print(f"Your reason is saved in {file.path.name}")
    elif kept is not None and compared.said not in (_SAME, _CLOSE):  # else there is no difference to explain
        reason = plain(str(file.entries().get(why_key(name), {}).get("text", "")))
        kept_reason = f"Your reason: {reason}\n" if reason else ""
        show_widget(build, f'{kept_reason}Why do they differ? One sentence: compare("{name}", …, why="…")')


MISSING_PREDICTION = (
    "To predict is the point of this: type a number into the box above, then run this cell again."
)
_SAME_RATIO, _SAME_POINTS = 1.05, 1.0
_SAME = "The same."
_CLOSE = "Close enough to call it the same."
"""Of a prediction within 5 percent, or within a point of a share."""


@dataclass(frozen=True)
class _Compared:
    """The prediction and the measurement, each with its words, and what is said of the two."""

    figures: list[tuple[str, str]]
    said: str

    def __str__(self) -> str:
        (_, predicted), (_, measured) = self.figures
        return f"predicted  {predicted}\nmeasured   {measured}\n{self.said}"


def _compared(kept: float | None, measured: float, unit: str, digits: int) -> _Compared:
    shown = "nothing" if kept is None else _shown(kept, unit, digits)
    figures = [("You predicted", shown), ("Measured here", _shown(measured, unit, digits))]
    return _Compared(figures, MISSING_PREDICTION if kept is None else _difference(kept, measured, unit))


def _difference(kept: float, measured: float, unit: str) -> str:
    """How far apart, without praise or blame: in points where it is a share already."""
    side = "high" if kept > measured else "low"
    if kept == measured:
        return _SAME
    if unit == "%":
        apart = abs(kept - measured)
        return f"The prediction is {apart:.2g} points too {side}." if apart >= _SAME_POINTS else _CLOSE
    if min(kept, measured) <= 0:
        return f"The prediction is {abs(kept - measured):.3g} too {side}."
    ratio = max(kept, measured) / min(kept, measured)
    if ratio < _SAME_RATIO:
        return _CLOSE
    return f"The prediction is {ratio:.3g} times too {side}."


def _shown(value: float, unit: str, digits: int | None = None) -> str:
    number = f"{value:,g}" if digits is None else f"{value:,.{digits}f}"
    return f"{number} {unit}".strip() if unit not in ("×", "x") else f"{number}{unit}"
