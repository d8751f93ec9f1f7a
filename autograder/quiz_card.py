"""What the quiz says: plain text and HTML of questions, feedback and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autograder.quiz_bank import PASS_MARK, Judgement, Question
from autograder.rich import GREEN, GREY, ORANGE, plain, render


def quiz_text(bank: dict[str, Any], entries: Mapping[str, Any]) -> str:
    """The whole quiz as text, with the saved choices marked and how to answer."""
    lines = [
        f"Quiz {bank['lesson']}: {bank['title']}",
        f'Where no buttons are shown, answer like this: answer("{bank["questions"][0]["id"]}", "b")',
        "",
    ]
    for question in bank["questions"]:
        chosen = entries.get(question["id"], {}).get("choice")
        lines.append(f"{question['id']}  {plain(question['text'])}")
        for option in question["options"]:
            mark = "(•)" if option["id"] == chosen else "( )"
            lines.append(f"  {mark} {option['id']}  {plain(option['text'])}")
        lines.append("")
    return "\n".join([*lines, bank["note"]])


def feedback_text(question: Question, choice: str, judgement: Judgement) -> str:
    """What an answer is worth, in two or three lines."""
    head = f"{'✓' if judgement.is_right else '✗'} {question['id']} {choice}: {_word(judgement)}"
    measured = [f"Measured on this machine: {judgement.measured}"] if judgement.measured else []
    return "\n".join([head, *measured, plain(judgement.reason)])


def feedback_html(judgement: Judgement, saved: str = "") -> str:
    """The same for the widget."""
    colour, mark = (GREEN, "✓") if judgement.is_right else (ORANGE, "✗")
    said = asdict(judgement) | {"word": _word(judgement), "saved": saved}
    return render("feedback.html", colour=colour, mark=mark, **said)


def grade_text(result: dict[str, Any]) -> str:
    """The grade in a few lines: what is wrong by the name of its mistake, never the key."""
    rows = [f"  {mark} {question_id}  {words}" for mark, question_id, words in _rows(result)]
    problem = [result["problem"]] if result["problem"] else []
    return "\n".join([f"Quiz {result['lesson']}: {_headline(result)}", *problem, *rows])


def grade_html(result: dict[str, Any]) -> str:
    """The grade as a card."""
    answered = any(question["choice"] for question in result["questions"])
    colour = GREEN if result["passed"] else ORANGE if answered else GREY
    label = f"Result of quiz {result['lesson']}"
    return render(
        "grade.html", **result, colour=colour, label=label, headline=_headline(result), rows=_rows(result)
    )


def _headline(result: dict[str, Any]) -> str:
    at_once = sum(question["right_first"] for question in result["questions"])
    verdict = f"{'passed' if result['passed'] else 'not passed yet'} ({PASS_MARK:.0%} are needed)"
    return f"{result['score']:g} of {result['max_score']:g} right, {at_once} at the first try: {verdict}"


def _rows(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Mark, id and words of each question."""
    return [
        ("○", question["id"], "not answered")
        if question["choice"] is None
        else ("✓", question["id"], f"{question['choice']}: right")
        if question["is_right"]
        else ("✗", question["id"], f"{question['choice']}: {question['mistake']}")
        for question in result["questions"]
    ]


def _word(judgement: Judgement) -> str:
    if judgement.measured == "not measured":
        return "Counts"
    return "Right" if judgement.is_right else f"Not this one: {judgement.mistake}"
