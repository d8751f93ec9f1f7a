"""What the class page counts, and that nothing a student chose runs on it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

from autograder.common.result import Reason
from autograder.course.lessons import load_lesson
from autograder.grading.reports import reporting as report
from autograder.grading.reports.class_report import (
    Alike,
    ClassReport,
    Look,
    OfExercise,
    OfQuestion,
    Points,
    Speedups,
)
from autograder.grading.submissions import Submission
from autograder.quizzes import exams
from autograder.quizzes.grading import load_bank
from autograder.show.rich import plain
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS
from tests.autograder.solutions import reference_sources

ATTACK = '</h2><img src=x onerror="alert(1)"><script>alert(2)</script>'
#: What `report` finds in a class in which everything has gone wrong that can.
FOUND = ClassReport(
    lesson="03",
    title="Batch size and gradient accumulation",
    students={f"s{number}": Points(score=float(number), max_score=30.0) for number in range(30)}
    | {ATTACK: Points(score=3.5, max_score=30.0)},
    ungraded=[f"late {ATTACK}"],
    unchecked=2,
    bins=[1, 0, 0, 4, 5, 9, 7, 3, 1, 1],
    exercises=[
        OfExercise(
            id="3.5",
            title="Compute again instead of keeping",
            verdicts={"pass": 12, "fail": 9, "inconclusive": 1, "error": 1, "not_attempted": 7},
            mistakes={"one checkpoint around everything": 8, f"ValueError: {ATTACK}": 1},
            speedups=Speedups(bar=0.625, low=0.7, median=0.74, high=0.8),
        ),
        OfExercise(id="3.6", title="Challenge", verdicts={}, mistakes={}, speedups=None),
    ],
    questions=[
        OfQuestion(
            id="03.1",
            text="What is\n    a < b\nhere?",
            answers=30,
            difficulty=0.8,
            discrimination=discrimination,
            mistakes={"`zero_grad` overlooked": 5},
        )
        for discrimination in (0.45, -0.1, None)
    ],
    review=["s1, 3.5: faster than `1.5 ×`"],
    looks=[Look(id="3.5", why=f"{ATTACK}: faster than `1.5 ×`", alike=[["s1", ATTACK], ["s2"]])],
    granted={ATTACK: f"3 days more, {ATTACK}"},
    problems={ATTACK: [f"{ATTACK}.ipynb: not valid JSON"]},
    alike=[Alike(id="3.5", students=["s1", ATTACK])] * 11,
)


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.handlers: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_nothing_that_a_student_chose_runs_on_the_page(tmp_path: Path) -> None:
    report.write_page(FOUND, tmp_path / "class.html")
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    tags = Tags(page)
    assert not {"img", "script"} & tags.seen and not tags.handlers
    assert page.count("onerror") == str(FOUND).count("onerror"), "shown, and not left out"


def test_a_class_without_grades_has_a_page(tmp_path: Path) -> None:
    nothing = {name: type(value)() for name, value in vars(FOUND).items()} | {"bins": [0] * report.NUM_BINS}
    report.write_page(ClassReport(**nothing), tmp_path / "class.html")
    assert "0 students in the gradebook" in (tmp_path / "class.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("reason", "mistake"),
    [
        (
            Reason(likely="12.3 micro-batches an update: each costs something", next="c"),
            "… micro-batches an update",
        ),
        (
            Reason(likely="no loss scaling with fp16. Or 32-true was meant", next="c"),
            "no loss scaling with fp16",
        ),
        (
            Reason(note="Your code had 30 s for this step and did not finish."),
            "Your code had … s for this step and did not finish.",
        ),
    ],
)
def test_one_mistake_is_counted_as_one_whatever_its_numbers(reason: Reason, mistake: str) -> None:
    assert report._mistake(reason) == mistake


def test_a_question_tells_those_who_know_the_rest_from_the_others() -> None:
    assert report._discrimination([(True, 7), (True, 6), (False, 2), (False, 1)]) == pytest.approx(
        0.98, abs=0.01
    )
    assert report._discrimination([(False, 7), (False, 6), (True, 2), (True, 1)]) == pytest.approx(
        -0.98, abs=0.01
    )
    assert report._discrimination([(True, 7), (True, 6)]) is None


def test_the_questions_of_an_exam_are_counted_by_their_place_in_the_bank(tmp_path: Path) -> None:
    bank, places = load_bank("09"), [exams.Place(seed=seed, attempt=1, handed_in=1) for seed in (1, 2)]
    handed_in = []
    for place in places:
        path = tmp_path / f"{place.seed}.json"
        answers = {question.id: {"choice": "a"} for question in exams.paper(bank, place).questions}
        path.write_text(json.dumps({"answers": {"exam": asdict(place), **answers}}), encoding="utf-8")
        handed_in.append(
            Submission(student="", folder=tmp_path, cells=(), answers=path, sources={}, problems=())
        )
    found = {question.id: question for question in report._questions(tmp_path, load_lesson("09"), handed_in)}
    drawn = Counter(question.id for place in places for question in exams.deal(bank, place.seed, 1))
    assert {name: question.answers for name, question in found.items()} == drawn
    texts = {question.id: plain(question.text) for question in bank.questions}
    assert all(question.text == texts[name] for name, question in found.items())


def test_equal_code_is_that_of_students_and_not_the_stub(tmp_path: Path) -> None:
    from autograder.engine.source.notebook import exercise_sources, read_notebook

    lesson = load_lesson("00")
    stub = exercise_sources(read_notebook(NOTEBOOKS / "release" / LESSON_00 / f"{LESSON_00}.ipynb"))["0.1"]
    right = reference_sources("00")["0.1"]
    wrong = right.replace("baseline_seconds / candidate_seconds", "candidate_seconds / baseline_seconds")
    assert wrong != right
    sources = {
        "stub": stub,
        "stub with a comment": f"# I tried\n{stub}",
        "ada": right,
        "grace": right + "\n# all my own work; NotImplementedError\n",
        "alan": wrong,
    }
    submissions = [
        Submission(
            student=name, folder=tmp_path, cells=(), answers=None, sources={"0.1": source}, problems=()
        )
        for name, source in sources.items()
    ]
    assert report._alike(submissions, lesson) == [Alike(id="0.1", students=["ada", "grace"])]
