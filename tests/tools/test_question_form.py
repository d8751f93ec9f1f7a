"""Form gives no answer away, in any bank; and one that did would be found out."""

from __future__ import annotations

import pytest

from tools.question_form import Asked, banks, by_rule, shares

BANKS = banks()
SHARES = shares(BANKS)
ENOUGH = 0.32  # of the keys; chance is 0.25


@pytest.mark.parametrize("name", BANKS)
def test_who_reads_the_form_alone_finds_hardly_more_keys_than_chance(name: str) -> None:
    assert SHARES[name].rule <= ENOUGH
    assert SHARES[name].model <= ENOUGH


def test_all_questions_with_a_key_are_asked() -> None:
    assert sum(map(len, BANKS.values())) == 166
    assert {one.chance for asked in BANKS.values() for one in asked} == {0.25}


def _asked(number: int, tell: str) -> Asked:
    """A question whose right option says `tell` besides."""
    key = number % 4
    texts = [f"Change the size of the batch to {number + place}" for place in range(4)]
    texts[key] += tell
    return Asked(id=f"{number}", texts=tuple(texts), stem="What do you change?", key=key)


@pytest.mark.parametrize("tell", [" and measure again, before and after", "; look first", ", not the rate"])
def test_a_habit_of_the_author_is_found_out(tell: str) -> None:
    by_bank = {name: [_asked(number, tell) for number in range(12)] for name in ("01", "02")}
    assert all(found.model > 0.9 for found in shares(by_bank).values())


def test_the_rule_leaves_out_the_longest_reasons_and_nothing() -> None:
    texts = ("Nothing", "Less, because it diverges", "The rate", "The longest of all of these, by some words")
    assert by_rule(Asked(id="1", texts=texts, stem="", key=2)) == 1.0
    assert by_rule(Asked(id="1", texts=texts, stem="", key=3)) == 0.0
