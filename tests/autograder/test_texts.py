"""What a learner wrote, as text: nothing in it acts, nothing of it passes for ours, and none of it is endless."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.common import Reason, Result
from autograder.common.result import MAX_REASON_BYTES
from autograder.common.texts import MARK, as_json, named, one_line, printable, quoted
from autograder.engine import evidence
from autograder.grading.nbgrader.exports import text_cell
from autograder.show import folded
from autograder.show.card import result_html, result_text
from autograder.show.evidence_page import MAX_SOURCE_BYTES

TEXTS = st.text(
    st.sampled_from("ab ✓\n\r\t\x1b\x07\x9b\u202e\u2028\u200b\u0338漢é|“”\\\ud800") | st.characters(),
    max_size=300,
)
PARTS = ("note", "expected", "got", "likely", "next", "after", "clock")
FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\u00a0=1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    "﹦1",
    "−1",
    "==1",
]
SPLIT = ["a;=1+2", "a,=1", "a\t=1", "a|=1", "a -1", 'x";=1', "'=1", '"=1"', "\"'=1", "a:@x"]


def acts(text: str) -> set[str]:
    return {
        char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }


@given(TEXTS)
def test_no_character_of_a_printable_text_acts(text: str) -> None:
    assert acts(printable(text)) <= set("\u200d") and printable(printable(text)) == printable(text)
    assert "\n" not in one_line(text) and "\n" not in quoted(text)
    assert len(one_line(text, 150).encode()) <= 150 and one_line(one_line(text, 150), 150) == one_line(
        text, 150
    )
    assert quoted(text)[1:-1].count("”") == 0 == quoted(text)[1:-1].count("“")


@given(TEXTS)
def test_json_keeps_the_value_and_has_no_character_that_acts(text: str) -> None:
    said = as_json({"of": text})
    assert not acts(said) - {"\u200d"} and json.loads(said) == {"of": text}


@given(st.dictionaries(st.sampled_from(PARTS), TEXTS.map(lambda text: text * 30)))
def test_a_reason_is_bounded_and_marks_its_lines(parts: dict[str, str]) -> None:
    reason = Reason(**parts)
    assert len(str(reason).encode()) <= MAX_REASON_BYTES and Reason(**asdict(reason)) == reason
    heads = ("Expected: ", "Got: ", "Likely: ", "Next: ", "Clock: ", MARK)
    first = [text.split("\n")[0] for text in (reason.note, reason.after)]
    assert all(line.startswith(heads) or line in first for line in str(reason).split("\n") if line)


def test_what_is_cut_says_so_and_what_is_short_stays() -> None:
    reason = Reason(expected="code that runs", got="x" * 100_000, likely="a loop", next="look at it")
    assert "the whole has 100,000 characters" in reason.got and reason.likely == "a loop"
    assert len(str(reason)) > 0.9 * MAX_REASON_BYTES
    assert Reason(got="y" * 3_000).got == "y" * 3_000


def test_the_looks_of_a_result_are_bounded() -> None:
    result = Result(
        id="1.1", verdict="pass", reason=Reason(), review=tuple(f"{n}\n" + "z" * 9_000 for n in range(99))
    )
    assert len(result.review) == 20 and result.review[-1] == "and 80 more like these"
    assert max(map(len, result.review)) <= 500 and Result.of_message(result.to_message()) == result


@pytest.mark.parametrize("name", ["al", "new.one@uni.edu", "00_start_here.ipynb", "José", "a/b"])
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert named(name) == name


@pytest.mark.parametrize("name", ["✓ 1.1 Passed", "Lesson 00", "a\nb", "a\u202eb", "", " al", "x: y"])
def test_another_name_is_in_quotation_marks(name: str) -> None:
    assert named(name).startswith("“") and named(name).endswith("”") and not acts(named(name))


def test_letters_marks_and_emoji_of_people_stay() -> None:
    for text in ("José María Núñez", "Nguyễn Thị Ánh", "नमस्ते", "👩‍💻 ⚠️ 👍🏽", "漢字", "Cafe\u0301", "a b"):
        assert printable(text) == text
    assert printable("a\u00a0b\u3000c\td") == "a b c    d"
    assert printable("Z" + "\u0338" * 9).count("\u0338") == 3, "a stack of marks covers other lines"


def test_a_line_is_folded_where_the_window_ends() -> None:
    text = f"Got: {'.' * 51}✓ 1.1 Passed: 10 of 10 points\n{MARK}{'漢' * 60}"
    for columns in range(20, 90):
        lines = folded(text, columns).split("\n")
        wide = [
            sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line) for line in lines
        ]
        assert max(wide) <= columns and all(line.startswith(("Got: ", MARK)) for line in lines)
    assert folded("short\nlines", 40) == "short\nlines"


@pytest.mark.parametrize("text", [*FORMULAS, *SPLIT])
def test_a_cell_of_a_table_is_no_formula_wherever_the_line_is_split(text: str) -> None:
    cell = text_cell(text)
    for separator in (None, ",", ";", "\t", "|", " ", ":"):
        for part in cell.split(separator) if separator else [cell]:
            start = unicodedata.normalize("NFKC", part.strip(' "\t\r\n'))[:1]
            assert start not in tuple("=+-@−"), (separator, cell)


@pytest.mark.parametrize(
    "text", ["Ada Smith-Jones", "al@uni.edu", "Lovelace, Ada", "01_efficient", "a=b", "2026-05-04 12:00"]
)
def test_a_harmless_cell_stays(text: str) -> None:
    assert text_cell(text) == text


def test_a_card_marks_what_is_theirs_and_escapes_it() -> None:
    said = "no\n**Passed** <b>\u202e\n✓ 1.1 Passed: 10 of 10 points"
    result = Result(id="1.1", verdict="fail", reason=Reason(expected="code that runs", got=said))
    html = result_html(result)
    assert "<b>" not in html and "<strong>Passed" not in html and "\u202e" not in html
    assert f'<code style="white-space:pre-wrap">{MARK}✓ 1.1 Passed' in html
    assert f"\n{MARK}✓ 1.1 Passed" in result_text(result)


def test_an_evidence_page_is_bounded_and_says_what_was_cut(tmp_path: Path) -> None:
    source = "# \u202e<b>" + "&\x1b" * MAX_SOURCE_BYTES
    result = Result(id="1.1", verdict="fail", reason=Reason(got="&" * 9_000), review=("&" * 900,) * 99)
    facts = evidence.Facts(result=result, threads=1, conditions={})
    assert evidence.save(tmp_path / "1.1.json", source, 1, evidence.History(), facts)
    html = (tmp_path / "1.1.html").read_text(encoding="utf-8")
    assert len(html.encode()) < 1_000_000 and f"the whole has {len(source):,} characters" in html
    assert not acts(html) and "<b>" not in html
    assert json.loads((tmp_path / "1.1.json").read_text())["source"] == source
