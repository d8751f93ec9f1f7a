"""Of several files in a hand-in the solved one is graded, and who has done something else in another is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.course import load_lesson
from autograder.grading.submissions import Submission, read_submission

LESSON = load_lesson("01")
NAME, ANSWERS = f"{LESSON.slug}.ipynb", f"{LESSON.slug}_answers.json"


def notebook(*solved: str, by: str = "return 1") -> str:
    """The lesson's exercises, of which these are solved."""
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": f'@exercise("{each.id}")\ndef {each.entry}():\n    '
            + (by if each.id in solved else 'raise NotImplementedError("not written yet")'),
        }
        for each in LESSON.exercises
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def answers(**choices: str) -> str:
    given: dict[str, Any] = {f"01.{number[1:]}": {"choice": letter} for number, letter in choices.items()}
    return json.dumps({"format": 1, "lesson": "01", "answers": given})


def read(course: Path, **files: str) -> Submission:
    folder = course / "submitted" / "ada" / LESSON.slug
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_submission(course, "ada", LESSON)


def num_solved(found: Submission) -> int:
    return sum("NotImplementedError" not in source for source in found.sources.values())


@pytest.mark.parametrize(
    "other", [f"{LESSON.slug}-Copy1.ipynb", f"final/{NAME}", "a.ipynb", f"{LESSON.slug} (1).ipynb"]
)
def test_the_solved_one_is_graded_whatever_lies_beside_it(tmp_path: Path, other: str) -> None:
    found = read(tmp_path, **{NAME: notebook(), other: notebook("1.1", "1.3")})
    assert num_solved(found) == 2 and not any("other code" in line for line in found.problems)
    files = {NAME: notebook("1.1", "1.3"), other: notebook(), ANSWERS: answers()}
    again = read(tmp_path / "again", **files)
    assert num_solved(again) == 2 and again.problems == ()


def test_other_code_in_another_notebook_is_named(tmp_path: Path) -> None:
    other = notebook("1.1", "1.2", by="return 2")
    found = read(tmp_path, **{NAME: notebook("1.1", "1.3"), "old.ipynb": other})
    assert f"old.ipynb holds other code for 1.1, 1.2: graded was {NAME}" in found.problems
    assert "return 1" in found.sources["1.1"]
    same = {NAME: notebook("1.1"), "b.ipynb": notebook("1.1"), ANSWERS: answers()}
    assert read(tmp_path / "same", **same).problems == ()


def test_the_file_with_answers_is_graded_and_other_answers_are_named(tmp_path: Path) -> None:
    again = f"{LESSON.slug}_answers (1).json"
    found = read(tmp_path, **{NAME: notebook(), ANSWERS: answers(), again: answers(q1="a", q2="b")})
    assert found.answers and found.answers.name == again
    assert found.problems == (f"the answers file is called “{again}”: graded all the same",)
    found = read(
        tmp_path / "two",
        **{NAME: notebook(), ANSWERS: answers(q1="c", q2="b"), again: answers(q1="a", q2="b")},
    )
    assert found.answers and found.answers.name == ANSWERS
    assert found.problems == (f"“{again}” holds other answers: graded was {ANSWERS}",)


def test_a_damaged_file_of_answers_does_not_hide_a_sound_one(tmp_path: Path) -> None:
    found = read(tmp_path, **{NAME: notebook(), ANSWERS: "{", "old_answers.json": answers(q1="a")})
    assert found.answers and found.answers.name == "old_answers.json"
    assert "not JSON" in found.problems[0]


def of_lesson(number: str, **more: Any) -> str:
    """What a diligent learner has of another lesson."""
    given = {f"{number}.{question}": {"choice": "a"} for question in range(1, 16)}
    return json.dumps({"format": 1, "lesson": number, "answers": given | more})


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ("03_batch_size_and_accumulation_answers.json", of_lesson("03", **{"predict:3a": {"value": 2.0}})),
        ("09_skill_exam_answers.json", of_lesson("09.1", exam={"seed": 1, "attempt": 1, "handed_in": 1})),
        (f"03/{ANSWERS}", of_lesson("03")),
        ("my answers.json", json.dumps({"format": 1, "lesson": "02", "answers": {"note": {"choice": "a"}}})),
    ],
)
def test_answers_of_another_lesson_are_never_graded(tmp_path: Path, other: str, text: str) -> None:
    found = read(tmp_path, **{NAME: notebook(), ANSWERS: answers(q1="a"), other: text})
    assert found.answers and found.answers.name == ANSWERS and found.answers.parent.name == LESSON.slug
    assert [line.partition(": ")[0] for line in found.problems] == ["not of this lesson, and not graded"]
    alone = read(tmp_path / "alone", **{NAME: notebook(), other: text})
    assert alone.answers is None and len(alone.problems) == 2
    assert alone.problems[1].startswith(f"there is no answers file, {ANSWERS}")


def test_an_old_copy_with_more_answers_takes_nothing_from_ones_own(tmp_path: Path) -> None:
    old = f"{LESSON.slug}_answers.damaged-20260101.json"
    files = {NAME: notebook(), ANSWERS: answers(q1="a"), old: answers(q1="b", q2="b", q3="c")}
    found = read(tmp_path, **files)
    assert found.answers and found.answers.name == ANSWERS
    assert found.problems == (f"{old} holds other answers: graded was {ANSWERS}",)


def test_the_answers_beside_the_graded_notebook_are_the_ones(tmp_path: Path) -> None:
    files = {NAME: notebook(), ANSWERS: answers(q1="a"), f"final/{NAME}": notebook("1.1")}
    found = read(tmp_path, **files, **{f"final/{ANSWERS}": answers(q1="b", q2="a")})
    assert found.answers and found.answers.parent.name == "final"
    kept_elsewhere = read(tmp_path / "2", **{NAME: notebook(), f"data/{ANSWERS}": answers(q1="b")})
    assert kept_elsewhere.answers and kept_elsewhere.problems == ()


SOLVED = "def {entry}():\n    return 1"


def of_sources(course: Path, *sources: str) -> Submission:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for source in sources
    ]
    return read(
        course, **{NAME: json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})}
    )


@pytest.mark.parametrize("slip", ["13", "3.1", "1.3 ", "1,3", "1.03", "01.3", "9.9", ""])
def test_a_slip_in_the_number_hides_no_solution(tmp_path: Path, slip: str) -> None:
    (third,) = (each for each in LESSON.exercises if each.id == "1.3")
    solved = f'@exercise("{slip}")\n' + SOLVED.format(entry=third.entry)
    found = of_sources(tmp_path, solved)
    assert found.sources == {"1.3": solved}
    assert (
        f'1.3: no solved cell has the line @exercise("1.3"): graded was cell 1, which defines {third.entry}'
        in (found.problems)
    )


def test_two_cells_that_were_merged_are_both_graded(tmp_path: Path) -> None:
    third, fourth = (each for each in LESSON.exercises if each.id in ("1.3", "1.4"))
    merged = f'{SOLVED.format(entry=third.entry)}\n\n@exercise("1.4")\n{SOLVED.format(entry=fourth.entry)}'
    stub = f'@exercise("1.3")\ndef {third.entry}():\n    raise NotImplementedError'
    for sources in ([merged], [stub, merged], [merged, stub]):
        found = of_sources(tmp_path / str(len(sources)) / str(sources[0] == stub), *sources)
        assert found.sources == {"1.3": merged, "1.4": merged}
        assert any(line.startswith("1.3: no solved cell has the line") for line in found.problems)
    # A help of another exercise takes the place of no attempt, and is not told as one.
    tried = f'@exercise("1.3")\n{SOLVED.format(entry=third.entry)}  # mine'
    found = of_sources(tmp_path / "tried", tried, merged)
    assert found.sources == {"1.3": tried, "1.4": merged}
    assert not any(line.startswith("1.3") for line in found.problems)
