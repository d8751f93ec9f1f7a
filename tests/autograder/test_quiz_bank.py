"""The author's text and the shipped bank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.quizzes import kinds
from autograder.quizzes.bank import Bank
from autograder.quizzes.compiler import compile_bank
from autograder.quizzes.grading import load_bank
from autograder.quizzes.kinds import Choice
from course_lib.base.errors import UserError

LESSONS = Path(__file__).parents[2] / "notebooks" / "lessons"
HEAD = 'lesson = "77"\ntitle = "T"\n'
RIGHT = '[[question.option]]\ntext = "r"\nright = true\nreason = "because"\n'
WRONG = '[[question.option]]\ntext = "{}"\nmistake = "m"\nreason = "since"\n'
QUESTION = '[[question]]\nid = "77.{}"\nkind = "bug"\ntext = "?"\n'
ONE = HEAD + QUESTION.format(1) + RIGHT + WRONG.format("w1") + WRONG.format("w2")

ONE_B = ONE.removeprefix(HEAD).replace("77.1", "77.1b").replace('"?"', '"other?"')


def _compiled(tmp_path: Path, text: str) -> Bank:
    path = tmp_path / "77_quiz.toml"
    path.write_text(text)
    return compile_bank(path)


def _measured(*intervals: str) -> str:
    question = '[[question]]\nid = "77.1"\nkind = "estimate"\ntext = "?"\nmeasured = "m"\n'
    options = [WRONG.format(f"o{i}") + interval for i, interval in enumerate(intervals)]
    return HEAD + question + "".join(options)


@pytest.mark.parametrize("lesson", ["01", "09"])
def test_the_shipped_bank_is_what_its_text_compiles_to(lesson: str) -> None:
    assert load_bank(lesson) == compile_bank(LESSONS / f"{lesson}_quiz.toml")


# The right letters of each bank, first forms first; "." where this machine decides.
LETTERS = {
    "01": "bdbaca.d.cdadcac.b.b",
    "02": "bdab.c.daccd.a.b",
    "03": "cadbdbac.acadbcdb.",
    "04": "cabdac.bbcdada.c",
    "05": "badc.bdadcab.cbd",
    "06": "bdbdac.ccadbca.b",
    "07": "acd.bac.cda.dbb.",
    "08": "cbadc.bdcbdcab.cad",
    "09": "cadbca..cbdbadb.cabdca..bdcadba.bdbcbdd.cabdcad.dbacbd..bdcabd..",
}


@pytest.mark.parametrize("lesson", LETTERS)
def test_an_answer_keeps_what_it_is_worth_when_a_question_is_changed(lesson: str) -> None:
    """Answers files hold ids and letters: a question that is mended or replaced keeps both."""
    assert "".join(question.key or "." for question in load_bank(lesson).all_questions) == LETTERS[lesson]


def test_nothing_in_the_shipped_bank_gives_a_key_away_at_a_glance() -> None:
    shown = json.dumps(load_bank("01").to_dict(), ensure_ascii=False)
    for question in load_bank("01").questions:
        assert question.reasons and question.mistakes
        for secret in [*question.reasons, *question.mistakes]:
            assert not secret or secret not in shown
    assert "Practice release" in load_bank("01").note


def test_every_question_of_lesson_01_has_one_right_option_and_names_every_mistake() -> None:
    bank = load_bank("01")
    assert 7 <= len(bank.questions) <= 10
    assert any(question.is_measured for question in bank.questions)
    for question in bank.questions:
        assert isinstance(question, Choice)
        judged = [question.judge("01", option.id) for option in question.options]
        assert sum(one.is_right for one in judged) == 1, question.id
        for one in judged:
            assert one.reason
            assert one.is_right or one.mistake
            assert one.measured or not question.is_measured


def test_a_small_quiz_compiles_and_can_be_judged(tmp_path: Path) -> None:
    question = _compiled(tmp_path, ONE).questions[0]
    assert question.judge("77", "a").is_right
    wrong = question.judge("77", "b")
    assert (wrong.is_right, wrong.mistake, wrong.reason) == (False, "m", "since")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not toml", "77_quiz.toml"),
        (HEAD, "`question` is missing"),
        (ONE.replace("right = true", 'mistake = "x"'), "exactly one option"),
        (ONE.replace('mistake = "m"', "right = true"), "exactly one option"),
        (ONE.replace('mistake = "m"\n', ""), "option b: a wrong option needs `mistake`"),
        (ONE.replace('reason = "because"\n', ""), "`reason` is missing"),
        (ONE.replace("kind =", "knid ="), "`kind` is missing"),
        (ONE.replace('kind = "bug"', 'kind = "trivia"'), "kind must be one of"),
        (ONE.replace('id = "77.1"', 'id = "77.2"'), "ids must run"),
        (ONE + ONE_B.replace("77.1b", "77.2b"), "ids must run"),
        (ONE + ONE_B + ONE_B, "ids must run"),
        (ONE_B, "`lesson` is missing"),
        (ONE + ONE_B.replace("77.1b", "77.1"), "ids must run"),
        (ONE + ONE_B + ONE_B.replace("77.1b", "77.3"), "ids must run"),
        (ONE + ONE_B.replace("other?", "?"), "77.1b asks the same as 77.1"),
        (ONE.replace('"w2"', '"w1"'), "read the same"),
        (ONE + "low = 1\n", "need a question with `measured`"),
        (ONE + "weight = 1\n", "`weight` is not known"),
        (_measured("high = 1\n", "low = 1\nhigh = 2\n", "low = 3\n"), "intervals must cover"),
        (_measured("high = 1\n", "low = 0.5\nhigh = 2\n", "low = 2\n"), "intervals must cover"),
        (_measured("high = 1\n", "low = 1\nhigh = 2\n", "low = 2\nhigh = 3\n"), "intervals must cover"),
    ],
)
def test_a_bad_text_is_refused_with_the_place_and_the_fix(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=r"77_quiz\.toml") as caught:
        _compiled(tmp_path, text)
    assert says in str(caught.value)


def test_a_quiz_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    wrongs = WRONG.format("ww1") + WRONG.format("ww2")
    always_a = HEAD + "".join(QUESTION.format(n) + RIGHT + wrongs for n in range(1, 5))
    with pytest.raises(UserError, match="same place"):
        _compiled(tmp_path, always_a)
    long = RIGHT.replace('"r"', '"a right option that is long"')
    orders = [long + wrongs, wrongs + long, WRONG.format("ww1") + long + WRONG.format("ww2")]
    longest = HEAD + "".join(QUESTION.format(n + 1) + order for n, order in enumerate(orders))
    with pytest.raises(UserError, match="longest option"):
        _compiled(tmp_path, longest)


def test_second_forms_stand_apart_and_the_first_stands_in_where_there_is_none(tmp_path: Path) -> None:
    two = QUESTION.format(2) + WRONG.format("w1") + RIGHT + WRONG.format("w2")
    bank = _compiled(tmp_path, ONE + ONE_B + two)
    assert [question.id for question in bank.questions] == ["77.1", "77.2"]
    assert [question.id for question in bank.second_form().questions] == ["77.1b", "77.2"]
    assert bank.num_questions == 2
    plain = _compiled(tmp_path, ONE + two)
    assert plain.second_form() == plain and "second_forms" not in plain.to_dict()


def test_second_forms_that_can_be_guessed_are_refused(tmp_path: Path) -> None:
    wrongs = [WRONG.format("ww1"), WRONG.format("ww2")]
    text = HEAD
    for n in range(3):  # the first forms a, b, c; the second ones all a
        options = [*wrongs[:n], RIGHT, *wrongs[n:]]
        text += QUESTION.format(n + 1) + "".join(options)
        text += QUESTION.format(f"{n + 1}b").replace('"?"', '"other?"') + RIGHT + "".join(wrongs)
    with pytest.raises(UserError, match="second forms: the right option is too often at the same place"):
        _compiled(tmp_path, text)


def test_an_exams_parts_take_no_second_forms(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "01.toml").write_text((ONE + ONE_B).replace("77", "01"))
    with pytest.raises(UserError, match="take no second forms"):
        _compiled(tmp_path, f'{HEAD}parts = "parts"\ndraw = 1\nmin_measured = 0\n')


def _exam(tmp_path: Path, *, draw: int, min_measured: int = 0, topic: str = 'topic = "t"\n') -> Bank:
    (tmp_path / "parts").mkdir()
    for lesson in ("01", "02"):
        questions = [ONE.replace("77", lesson), QUESTION.format(2).replace("77", lesson)]
        text = "".join([*questions, RIGHT, WRONG.format("w1"), WRONG.format("w2")])
        text = text.replace('kind = "bug"\n', f'kind = "bug"\n{topic}')
        (tmp_path / "parts" / f"{lesson}.toml").write_text(text)
    text = f'{HEAD}parts = "parts"\ndraw = {draw}\nmin_measured = {min_measured}\n'
    return _compiled(tmp_path, text)


def test_an_exam_is_made_of_its_parts(tmp_path: Path) -> None:
    bank = _exam(tmp_path, draw=3)
    assert [(q.id, q.lesson, q.topic) for q in bank.questions] == [
        ("01.1", "01", "t"),
        ("01.2", "01", "t"),
        ("02.1", "02", "t"),
        ("02.2", "02", "t"),
    ]
    assert (bank.draw, bank.num_questions) == (3, 3)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"draw": 5}, "too few questions to draw 5"),
        ({"draw": 3, "min_measured": 1}, "fewer than 1 questions are measured"),
        ({"draw": 3, "topic": ""}, "question 01.1 needs a `topic`"),
    ],
)
def test_an_exam_that_cannot_be_dealt_is_refused(tmp_path: Path, asked: dict, says: str) -> None:
    with pytest.raises(UserError, match=r"77_quiz\.toml") as caught:
        _exam(tmp_path, **asked)
    assert says in str(caught.value)


def test_intervals_meet_without_gap_and_a_value_at_the_limit_counts_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _measured("high = 1\n", "low = 1\nhigh = 2\n", "low = 2\n")
    text = text.replace('measured = "m"', 'measured = "m"\nslack = 0.1')
    question = _compiled(tmp_path, text).questions[0]
    # The measurement is the world's part here: the rule about its value is what is under test.
    for value, right in [
        (0.5, "a"),
        (0.95, "ab"),
        (1.0, "ab"),
        (1.5, "b"),
        (2.05, "bc"),
        (1e9, "c"),
        (-1e9, "a"),
    ]:
        monkeypatch.setattr(kinds, "measure", lambda lesson, name, value=value: value)
        assert "".join(c for c in "abc" if question.judge("77", c).is_right) == right


def test_a_measurement_that_fails_is_not_held_against_the_learner(tmp_path: Path) -> None:
    text = _measured("high = 1\n", "low = 1\nhigh = 2\n", "low = 2\n")
    question = _compiled(tmp_path, text).questions[0]
    judged = question.judge("77", "b")  # lesson 77 has no measurements
    assert judged.is_right and "could not take the measurement" in judged.reason
