"""What the quiz says: plain text and HTML of questions, feedback and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from autograder.quiz_bank import Judgement, Question
from autograder.rich import GREEN, GREY, ORANGE, card, inline_html, plain


def quiz_text(bank: dict[str, Any], entries: Mapping[str, Any]) -> str:
    """The whole quiz as text, with the saved choices marked and how to answer."""
    first = bank["questions"][0]["id"]
    lines = [
        f"Quiz {bank['lesson']}: {bank['title']}",
        f'Where no buttons are shown, answer like this: answer("{first}", "b")',
        "",
    ]
    for question in bank["questions"]:
        entry = entries.get(question["id"], {})
        chosen = entry.get("choice") if isinstance(entry, dict) else None
        lines += [f"{question['id']}  {plain(question['text'])}"]
        lines += [
            f"  {'(•)' if option['id'] == chosen else '( )'} {option['id']}  {plain(option['text'])}"
            for option in question["options"]
        ]
        lines.append("")
    return "\n".join([*lines, bank["note"]])


def feedback_text(question: Question, choice: str, judgement: Judgement) -> str:
    """What an answer is worth, in two or three lines."""
    head = f"{'✓' if judgement.is_right else '✗'} {question['id']} {choice}: {_word(judgement)}"
    measured = [f"Measured on this machine: {judgement.measured}"] if judgement.measured else []
    return "\n".join([head, *measured, plain(judgement.reason)])


def feedback_html(judgement: Judgement, saved: str = "") -> str:
    """The same for the widget; `role=status` lets a screen reader speak it when it changes."""
    colour, sign = (GREEN, "✓") if judgement.is_right else (ORANGE, "✗")
    measured = (
        f"Measured on this machine: <strong>{escape(judgement.measured)}</strong>. "
        if judgement.measured
        else ""
    )
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:.2em .8em;margin:.2em 0;line-height:1.45">'
        f'<strong><span aria-hidden="true">{sign}</span> {escape(_word(judgement))}</strong><br>'
        f"{measured}{inline_html(judgement.reason)}"
        + (f'<div style="opacity:.75;font-size:.85em">{escape(saved)}</div>' if saved else "")
        + "</div>"
    )


def grade_text(result: dict[str, Any]) -> str:
    """The grade in a few lines: what is wrong by the name of its mistake, never the key."""
    lines = [f"Quiz {result['lesson']}: {_headline(result)}"]
    if result["problem"]:
        lines.append(result["problem"])
    lines += [
        f"  {_mark(question)[0]} {question['id']}  {_mark(question)[1]}" for question in result["questions"]
    ]
    return "\n".join(lines)


def grade_html(result: dict[str, Any]) -> str:
    """The grade as a card."""
    rows = "".join(
        f'<tr><td style="padding:.1em .6em .1em 0" aria-hidden="true">{_mark(question)[0]}</td>'
        f'<th scope="row" style="text-align:left;font-weight:normal;padding-right:1em">{escape(question["id"])}</th>'
        f'<td style="text-align:left">{escape(_mark(question)[1])}</td></tr>'
        for question in result["questions"]
    )
    problem = f"<p>{escape(result['problem'])}</p>" if result["problem"] else ""
    return card(
        GREEN if result["passed"] else ORANGE if any(q["choice"] for q in result["questions"]) else GREY,
        f"<strong>Quiz {escape(result['lesson'])}: {escape(_headline(result))}</strong>{problem}"
        f'<table style="border-collapse:collapse;margin:.5em 0"><tbody>{rows}</tbody></table>'
        '<div style="opacity:.75;font-size:.85em">You may change answers and run this cell again.</div>',
        label=f"Result of quiz {result['lesson']}",
    )


def _headline(result: dict[str, Any]) -> str:
    from autograder.quizzes import PASS_MARK

    at_once = sum(question["right_first"] for question in result["questions"])
    needed = f"{PASS_MARK:.0%} are needed"
    verdict = f"passed ({needed})" if result["passed"] else f"not passed yet ({needed})"
    return f"{result['score']:g} of {result['max_score']:g} right, {at_once} at the first try: {verdict}"


def _mark(question: dict[str, Any]) -> tuple[str, str]:
    if question["choice"] is None:
        return "○", "not answered"
    if question["is_right"]:
        return "✓", f"{question['choice']}: right"
    return "✗", f"{question['choice']}: {question['mistake']}"


def _word(judgement: Judgement) -> str:
    if judgement.measured == "not measured":
        return "Counts"
    return "Right" if judgement.is_right else f"Not this one: {judgement.mistake}"
