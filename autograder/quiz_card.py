"""What the quiz says: plain text and HTML of questions, feedback and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.quiz_bank import PASS_MARK, Judgement, Question
from autograder.rich import GREEN, GREY, ORANGE, card, plain, render

# `role=status` lets a screen reader speak it when it changes.
_FEEDBACK = """<div role="status"
 style="border-left:4px solid {{ colour }};padding:.2em .8em;margin:.2em 0;line-height:1.45">
<strong><span aria-hidden="true">{{ mark }}</span> {{ word }}</strong><br>
{% if measured %}Measured on this machine: <strong>{{ measured }}</strong>. {% endif %}{{ reason|inline }}
{% if saved %}<div style="opacity:.75;font-size:.85em">{{ saved }}</div>{% endif %}</div>"""
_GRADE = """<strong>Quiz {{ lesson }}: {{ headline }}</strong>{% if problem %}<p>{{ problem }}</p>{% endif %}
<table style="border-collapse:collapse;margin:.5em 0"><tbody>
{% for mark, id, words in rows %}
<tr><td style="padding:.1em .6em .1em 0" aria-hidden="true">{{ mark }}</td>
<th scope="row" style="text-align:left;font-weight:normal;padding-right:1em">{{ id }}</th>
<td style="text-align:left">{{ words }}</td></tr>
{% endfor %}
</tbody></table>
<div style="opacity:.75;font-size:.85em">You may change answers and run this cell again.</div>"""


def quiz_text(bank: dict[str, Any], entries: Mapping[str, Any]) -> str:
    """The whole quiz as text, with the saved choices marked and how to answer."""
    first = bank["questions"][0]["id"]
    lines = [
        f"Quiz {bank['lesson']}: {bank['title']}",
        f'Where no buttons are shown, answer like this: answer("{first}", "b")',
        "",
    ]
    for question in bank["questions"]:
        chosen = entries.get(question["id"], {}).get("choice")
        lines.append(f"{question['id']}  {plain(question['text'])}")
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
    """The same for the widget."""
    colour, mark = (GREEN, "✓") if judgement.is_right else (ORANGE, "✗")
    word, measured, reason = _word(judgement), judgement.measured, judgement.reason
    return render(
        _FEEDBACK, colour=colour, mark=mark, word=word, measured=measured, reason=reason, saved=saved
    )


def grade_text(result: dict[str, Any]) -> str:
    """The grade in a few lines: what is wrong by the name of its mistake, never the key."""
    rows = [f"  {mark} {question_id}  {words}" for mark, question_id, words in _rows(result)]
    problem = [result["problem"]] if result["problem"] else []
    return "\n".join([f"Quiz {result['lesson']}: {_headline(result)}", *problem, *rows])


def grade_html(result: dict[str, Any]) -> str:
    """The grade as a card."""
    answered = any(question["choice"] for question in result["questions"])
    colour = GREEN if result["passed"] else ORANGE if answered else GREY
    body = render(_GRADE, **result, headline=_headline(result), rows=_rows(result))
    return card(colour, body, label=f"Result of quiz {result['lesson']}")


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
