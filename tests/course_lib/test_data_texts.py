"""Texts, their fingerprint, and a split that leaks nothing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import Texts, split


def make(texts, labels, groups=None):
    names = tuple(str(i) for i in range(max(labels, default=-1) + 1))
    return Texts(
        texts=texts,
        labels=np.array(labels, dtype=np.int64),
        label_names=names,
        groups=None if groups is None else np.array(groups, dtype=np.int64),
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=2, max_size=120),
    st.floats(0.02, 0.9),
    st.integers(0, 99),
)
def test_groups_never_part_and_no_text_is_lost(rows, share, seed):
    # Three pairs of groups make sure that some label has two groups, so that a split exists.
    rows = [*rows, *((label, 20 + 2 * label + half) for label in range(3) for half in range(2))]
    texts = make([f"t{i}" for i in range(len(rows))], [row[0] for row in rows], [row[1] for row in rows])
    train, validation = split(texts, validation=share, seed=seed)
    assert sorted([*train, *validation]) == list(range(len(rows)))
    assert len(train) and len(validation)
    assert not set(texts.groups[train]) & set(texts.groups[validation])


@settings(deadline=None)
@given(st.lists(st.integers(0, 11), min_size=1, max_size=80), st.floats(0.02, 0.9), st.integers(0, 99))
def test_every_label_with_two_groups_is_on_both_sides(groups, share, seed):
    texts = make([f"t{i}" for i in range(len(groups))], [group % 3 for group in groups], groups)
    divisible = {group % 3 for group in groups if {g for g in groups if g % 3 == group % 3} != {group}}
    if not divisible:
        with pytest.raises(UserError, match="cannot be split"):
            split(texts, validation=share, seed=seed)
        return
    train, validation = split(texts, validation=share, seed=seed)
    assert set(texts.labels[validation]) == divisible
    assert set(texts.labels[train]) == set(texts.labels)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=8, max_size=200), st.integers(0, 99))
def test_without_groups_each_label_gives_its_share(labels, seed):
    texts = make([f"text {i}" for i in range(len(labels))], labels)
    counts = np.bincount(labels)
    if counts.max() < 2:
        return
    _, validation = split(texts, validation=0.25, seed=seed)
    given_up = np.bincount(texts.labels[validation], minlength=len(counts))
    for label, count in enumerate(counts):
        assert given_up[label] == (0 if count < 2 else min(max(round(count * 0.25), 1), count - 1))


def test_equal_texts_stay_on_one_side():
    words = [f"word {i % 20}" if i % 2 else f"WORD   {i % 20}" for i in range(400)]
    texts = make(words, [i % 20 % 2 for i in range(400)])
    train, validation = split(texts, validation=0.3, seed=1)
    folded = [" ".join(text.lower().split()) for text in words]
    assert not {folded[i] for i in train} & {folded[i] for i in validation}


def test_a_split_is_a_function_of_the_seed():
    texts = make([f"t{i}" for i in range(100)], [i % 2 for i in range(100)])
    first, again, other = (split(texts, validation=0.2, seed=seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 20


def test_one_huge_group_does_not_become_the_validation_set():
    texts = make([f"t{i}" for i in range(100)], [0] * 100, [0] * 90 + list(range(1, 11)))
    _, validation = split(texts, validation=0.1, seed=0)
    assert 0 not in texts.groups[validation] and len(validation) == 10


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(UserError, match="must lie between 0 and 1"):
        split(make(["a", "b"], [0, 0]), validation=share, seed=0)


def test_nothing_to_validate_on_is_refused():
    with pytest.raises(UserError, match="cannot be split"):
        split(make(["a", "b"], [0, 1]), validation=0.5, seed=0)


def test_fingerprint_sees_every_part_and_nothing_else():
    base = make(["ab", "c"], [0, 1], [0, 1])
    assert base.fingerprint == make(["ab", "c"], [0, 1], [0, 1]).fingerprint
    others = [
        make(["a", "bc"], [0, 1], [0, 1]),
        make(["ab", "c"], [1, 0], [0, 1]),
        make(["ab", "c"], [0, 1], [0, 0]),
        make(["ab", "c"], [0, 1]),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 5
    noted = Texts(
        texts=base.texts,
        labels=base.labels,
        label_names=base.label_names,
        groups=base.groups,
        notes=("a note",),
    )
    assert noted.fingerprint == base.fingerprint


def test_texts_and_labels_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="1 texts but 2 labels"):
        make(["a"], [0, 1])


def test_a_user_error_is_one_line_and_survives_a_process_boundary():
    error = UserError("row 3:\n   bad \t value")
    assert str(error) == "row 3: bad value"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
