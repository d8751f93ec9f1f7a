"""What the quiz says: plain text and HTML of questions, feedback and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from autograder.course import lesson_href, title_of
from autograder.quizzes.bank import PASS_MARK, Judgement, Question, judge
from autograder.quizzes.forms import has_second
from autograder.show import GREEN, GREY, ORANGE, plain, render

BY_INSTRUCTOR = "graded by your instructor after you hand in"


def quiz_text(bank: dict[str, Any], entries: Mapping[str, Any], graded: dict[str, Any] | None = None) -> str:
    """The whole quiz as text, with the saved choices marked and how to answer; with `graded`, the reasons too."""
    reasons = {question["id"]: question for question in graded["questions"]} if graded else {}
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
        if found := reasons.get(question["id"]):
            if found["choice"]:
                lines.append(feedback_text(question, found["choice"], judgement_of(found)))
            lines += filter(None, [plain(solution(bank["lesson"], question, found["choice"]))])
        lines.append("")
    if has_second(bank):
        lines.append(
            f'Once all are answered, quiz("{bank["lesson"]}", new_attempt=True) turns to other questions, and back. '
            "The better of the two counts."
        )
    return "\n".join([*lines, bank["note"]])


def judgement_of(graded: Mapping[str, Any]) -> Judgement:
    """The judgement in a graded question."""
    return Judgement(**{field.name: graded[field.name] for field in fields(Judgement)})


def feedback_text(question: Question, choice: str, judgement: Judgement) -> str:
    """What an answer is worth, in two or three lines."""
    head = f"{'✓' if judgement.is_right else '✗'} {question['id']} {choice}: {_word(judgement)}"
    measured = [f"Measured on this machine: {judgement.measured}"] if judgement.measured else []
    return "\n".join([head, *measured, plain(judgement.reason)])


def feedback_html(judgement: Judgement | None, saved: str = "", solution: str = "") -> str:
    """The same for the widget; without a judgement, of a question that was not answered."""
    colour, mark, word = GREY, "○", "Not answered"
    if judgement:
        colour, mark = (GREEN, "✓") if judgement.is_right else (ORANGE, "✗")
        word = _word(judgement)
    said = asdict(judgement or Judgement(is_right=False)) | {"colour": colour, "mark": mark, "word": word}
    return render("feedback.html", **said, saved=saved, solution=solution)


def solution(lesson_id: str, question: Question, choice: str | None) -> str:
    """What would have been right, and why; "" if `choice` is. For an exam that is handed in: nobody can try again."""
    judged = {option["id"]: judge(lesson_id, question, option["id"]) for option in question["options"]}
    if choice and judged[choice].is_right:
        return ""
    letter = next(letter for letter, judgement in judged.items() if judgement.is_right)
    # Why a measured one is right stands in each of its reasons.
    reason = "" if choice and "measured" in question else judged[letter].reason
    return f"Right is **{letter}**. {reason}".strip()


def grade_text(result: dict[str, Any]) -> str:
    """The grade in a few lines: what is wrong by the name of its mistake, never the key."""
    rows = [f"  {mark} {question_id}  {plain(words)}" for mark, question_id, words in _rows(result)]
    problem = [result["problem"]] if result["problem"] else []
    again = [
        f"  {lesson_id} · {title}: {', '.join(topics)}" for lesson_id, title, topics, _ in _missed(result)
    ]
    after = [*_attempts(result), *(["Read again:", *again] if again else [])]
    return "\n".join([f"Quiz {result['lesson']}: {headline(result)}", *problem, *rows, *after])


def grade_html(result: dict[str, Any]) -> str:
    """The grade as a card; with `handed_in`, as of one whose answers can no longer be changed."""
    answered = any(question["choice"] for question in result["questions"])
    is_open = result["score"] is None or not answered
    colour = GREEN if result["passed"] else GREY if is_open else ORANGE
    label = f"Result of quiz {result['lesson']}"
    more = {"rows": _rows(result), "tried": _attempts(result), "missed": _missed(result)}
    return render("grade.html", **result, **more, colour=colour, label=label, headline=headline(result))


def headline(result: dict[str, Any]) -> str:
    """What was reached, and whether it is enough."""
    if result.get("attempts") == []:
        return "no attempt is handed in yet"
    if result["score"] is None:
        num_answered = sum(question["choice"] is not None for question in result["questions"])
        return f"{num_answered} of {result['max_score']:g} answered: {BY_INSTRUCTOR}"
    at_once = sum(question["right_first"] for question in result["questions"])
    verdict = f"{'passed' if result['passed'] else 'not passed yet'} ({PASS_MARK:.0%} are needed)"
    if "attempts" in result:  # an exam says nothing between two tries
        return f"{result['score']:g} of {result['max_score']:g} right: {verdict}"
    return f"{result['score']:g} of {result['max_score']:g} right, {at_once} at the first try: {verdict}"


def _rows(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Mark, id and words of each question."""
    return [
        ("○", question["id"], "not answered")
        if question["choice"] is None
        else ("•", question["id"], f"{question['choice']}: saved")
        if result["score"] is None
        else ("✓", question["id"], f"{question['choice']}: right")
        if question["is_right"]
        else ("✗", question["id"], f"{question['choice']}: {question['mistake']}")
        for question in result["questions"]
    ]


def _attempts(result: dict[str, Any]) -> list[str]:
    """A line that names the attempt which the rows belong to, and what each one reached."""
    if len(forms := result.get("forms", [])) > 1:
        above = "first questions" if forms[0] == result["score"] else "other questions"
        reached = f"{forms[0]:g} of the first questions, {forms[1]:g} of the other ones"
        return [f"Above: the {above}. Right so far: {reached}. The better form counts."]
    attempts = result.get("attempts", [])
    if not attempts:
        return []
    reached = ", ".join(f"{one['score']:g} in attempt {one['attempt']}" for one in attempts)
    best = " The best one counts." if len(attempts) > 1 else ""
    return [f"Above: attempt {attempts[-1]['attempt']}. Right so far: {reached}.{best}"]


def _missed(result: dict[str, Any]) -> list[tuple[str, str, list[str], str]]:
    """Of an exam, what to read again: lesson, its title, the topics, and the way to it ("" where there is none)."""
    topics: dict[str, list[str]] = {}
    for question in result["questions"]:
        if "topic" in question and not question["is_right"]:
            topics.setdefault(question["lesson"], []).append(question["topic"])
    return [
        (lesson, title_of(lesson), sorted(missed), lesson_href(lesson))
        for lesson, missed in sorted(topics.items())
    ]


def _word(judgement: Judgement) -> str:
    if judgement.measured == "not measured":
        return "Counts"
    return "Right" if judgement.is_right else f"Not this one: {judgement.mistake}"
