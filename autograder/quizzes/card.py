"""What the quiz says: plain text and HTML of questions, feedback and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autograder.course import lesson_href, title_of
from autograder.kept import Answer
from autograder.quizzes.bank import PASS_MARK, Bank
from autograder.quizzes.grade import QuizGrade
from autograder.quizzes.question import Judgement, Question
from autograder.show import GREEN, GREY, ORANGE, plain, render

BY_INSTRUCTOR = "graded by your instructor after you hand in"


def quiz_text(bank: Bank, entries: Mapping[str, Any], grade: QuizGrade | None = None) -> str:
    """The whole quiz as text, with the saved choices marked and how to answer; with `grade`, the reasons too."""
    reasons = {question.id: question for question in grade.questions} if grade else {}
    lines = [
        f"Quiz {bank.lesson}: {bank.title}",
        f'Where no buttons are shown, answer like this: answer("{bank.questions[0].id}", "b")',
        "",
    ]
    for question in bank.questions:
        lines.append(f"{question.id}  {plain(question.text)}")
        lines += question.lines(Answer.from_entry(entries.get(question.id)).choice)
        if found := reasons.get(question.id):
            if found.choice and found.judgement:
                lines.append(feedback_text(question, found.choice, found.judgement))
            lines += filter(None, [plain(question.solution(bank.lesson, found.choice))])
        lines.append("")
    if bank.second_forms:
        lines.append(
            f'Once all are answered, quiz("{bank.lesson}", new_attempt=True) turns to other questions, and back. '
            "The better of the two counts."
        )
    return "\n".join([*lines, bank.note])


def feedback_text(question: Question, choice: str, judgement: Judgement) -> str:
    """What an answer is worth, in two or three lines."""
    head = f"{'✓' if judgement.is_right else '✗'} {question.id} {choice}: {_word(judgement)}"
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


def grade_text(grade: QuizGrade) -> str:
    """The grade in a few lines: what is wrong by the name of its mistake, never the key."""
    rows = [f"  {mark} {question_id}  {plain(words)}" for mark, question_id, words in _rows(grade)]
    problem = [grade.problem] if grade.problem else []
    again = [
        f"  {lesson_id} · {title}: {', '.join(topics)}" for lesson_id, title, topics, _ in _missed(grade)
    ]
    after = [*_attempts(grade), *(["Read again:", *again] if again else [])]
    return "\n".join([f"Quiz {grade.lesson}: {headline(grade)}", *problem, *rows, *after])


def grade_html(grade: QuizGrade) -> str:
    """The grade as a card."""
    is_open = grade.score is None or not grade.num_answered
    return render(
        "grade.html",
        **grade.to_dict(),
        rows=_rows(grade),
        tried=_attempts(grade),
        missed=_missed(grade),
        colour=GREEN if grade.passed else GREY if is_open else ORANGE,
        label=f"Result of quiz {grade.lesson}",
        headline=headline(grade),
        handed_in=grade.handed_in,
    )


def headline(grade: QuizGrade) -> str:
    """What was reached, and whether it is enough."""
    if grade.attempts == ():
        return "no attempt is handed in yet"
    if grade.score is None:
        return f"{grade.num_answered} of {grade.max_score:g} answered: {BY_INSTRUCTOR}"
    if grade.handed_in:
        return f"{grade.score:g} of {grade.max_score:g} right"
    at_once = sum(question.right_first for question in grade.questions)
    verdict = f"{'passed' if grade.passed else 'not passed yet'} ({PASS_MARK:.0%} are needed)"
    if grade.attempts is not None:  # an exam says nothing between two tries
        return f"{grade.score:g} of {grade.max_score:g} right: {verdict}"
    return f"{grade.score:g} of {grade.max_score:g} right, {at_once} at the first try: {verdict}"


def _rows(grade: QuizGrade) -> list[tuple[str, str, str]]:
    """Mark, id and words of each question."""
    return [
        ("○", question.id, "not answered")
        if question.choice is None
        else ("•", question.id, f"{question.choice}: saved")
        if question.judgement is None
        else ("✓", question.id, f"{question.choice}: right")
        if question.is_right
        else ("✗", question.id, f"{question.choice}: {question.mistake}")
        for question in grade.questions
    ]


def _attempts(grade: QuizGrade) -> list[str]:
    """A line that names the attempt which the rows belong to, and what each one reached."""
    if len(forms := grade.forms or ()) > 1:
        above = "first questions" if forms[0] == grade.score else "other questions"
        reached = f"{forms[0]:g} of the first questions, {forms[1]:g} of the other ones"
        return [f"Above: the {above}. Right so far: {reached}. The better form counts."]
    if not grade.attempts:
        return []
    reached = ", ".join(f"{one.score:g} in attempt {one.attempt}" for one in grade.attempts)
    best = " The best one counts." if len(grade.attempts) > 1 else ""
    return [f"Above: attempt {grade.attempts[-1].attempt}. Right so far: {reached}.{best}"]


def _missed(grade: QuizGrade) -> list[tuple[str, str, list[str], str]]:
    """Of an exam, what to read again: lesson, its title, the topics, and the way to it ("" where there is none)."""
    topics: dict[str, list[str]] = {}
    for question in grade.questions:
        if question.topic and not question.is_right:
            topics.setdefault(question.lesson, []).append(question.topic)
    return [
        (lesson, title_of(lesson), sorted(missed), lesson_href(lesson))
        for lesson, missed in sorted(topics.items())
    ]


def _word(judgement: Judgement) -> str:
    if judgement.measured == "not measured":
        return "Counts"
    return "Right" if judgement.is_right else f"Not this one: {judgement.mistake}"
