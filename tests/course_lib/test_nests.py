"""Batches of any form: moved, counted and left as they are."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import default_collate

from course_lib.base.nests import is_nest, leaves, map_leaves
from course_lib.training.window import MicroBatches, Window, num_samples, timed, to_device
from tests.later import Later

transformers = Later("transformers")
CPU, META = torch.device("cpu"), torch.device("meta")
Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any


class Mine(dict):
    note = ""


plain = st.none() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False)
tensors = st.integers(1, 3).map(torch.ones)
nests = st.recursive(
    plain | tensors,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict),
        st.builds(Pair, inner, inner),
        st.builds(Frozen, inner, inner),
    ),
    max_leaves=12,
)


def form(nest):
    """Types and keys, without the leaves."""
    if not is_nest(nest):
        return "leaf"
    parts = list(leaves_of_one(nest))
    return type(nest), list(nest) if isinstance(nest, dict) else None, [form(part) for part in parts]


def leaves_of_one(nest):
    if isinstance(nest, Frozen):
        return [nest.x, nest.y]
    return nest.values() if isinstance(nest, dict) else nest


@settings(max_examples=200, deadline=None)
@given(nests)
def test_a_nest_keeps_its_form_and_each_leaf_is_met_once_in_order(nest):
    before = list(leaves(nest))
    met = []

    def number(leaf):
        met.append(leaf)
        return len(met)

    mapped = map_leaves(number, nest)
    assert all(ours is theirs for ours, theirs in zip(met, before, strict=True))
    assert list(leaves(mapped)) == list(range(1, len(before) + 1))
    assert form(mapped) == form(nest)
    assert all(ours is theirs for ours, theirs in zip(leaves(nest), before, strict=True))  # left alone


@settings(max_examples=100, deadline=None)
@given(nests)
def test_tensors_move_and_the_rest_goes_along(nest):
    moved = to_device(nest, META)
    assert form(moved) == form(nest)
    for before, after in zip(leaves(nest), leaves(moved), strict=True):
        if isinstance(before, torch.Tensor):
            assert after.device == META and before.device == CPU
        else:
            assert after is before
    assert to_device(nest, CPU) is nest  # where all is at home, nothing is made


def test_mappings_and_what_moves_itself_keep_their_kind():
    x = torch.ones(2)
    mine, default = Mine(x=x), defaultdict(list, x=x)
    mine.note = "kept"
    moved = to_device(mine, META)
    assert (type(moved), moved.note, moved["x"].device) == (Mine, "kept", META) and mine["x"] is x
    assert to_device(default, META)["absent"] == []
    assert type(to_device(MappingProxyType({"x": x}), META)) is dict
    packed = pack_sequence([torch.ones(3), torch.ones(2)])
    assert to_device([packed, x], META)[0].data.device == META
    assert to_device(Frozen(x, "name"), META).x.device == META


def test_an_encoding_stays_one():
    pytest.importorskip("transformers")
    encoding = transformers.BatchEncoding({"input_ids": torch.ones(2, 3)})
    moved = to_device(encoding, META)
    assert type(moved) is type(encoding) and moved.input_ids.device == META


@pytest.mark.parametrize(
    "sample",
    [
        (torch.ones(3), 1),
        {"image": torch.ones(3), "name": "a", "label": 1.5},
        Pair(torch.ones(3), {"deep": [1, 2]}),
        ["id", torch.ones(3)],
    ],
)
def test_what_torchs_collate_makes_is_counted_by_rows(sample):
    batch = default_collate([sample] * 4)
    assert num_samples(batch) == 4
    moved = to_device(batch, META)
    assert all(leaf.device == META for leaf in leaves(moved) if isinstance(leaf, torch.Tensor))


def test_tokens_and_padding_are_counted_where_there_is_a_mask():
    metrics = {name: torch.tensor(1.0) for name in ("loss", "grad_norm", "num_items")}
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    text, image = (
        {"input_ids": mask, "attention_mask": mask},
        {"image": torch.ones(5, 2), "scale": torch.tensor(2.0)},
    )
    window = Window()
    window.add(image, metrics)
    read = window.read()
    assert read["num_samples"] == 5 and not {"num_tokens", "pad_fraction", "tokens_per_sec"} & read.keys()
    window.add(MicroBatches([text, image, "no tensor"]), metrics)
    read = window.read()
    assert (read["num_samples"], read["num_tokens"]) == (12, 4)
    assert read["pad_fraction"] == pytest.approx(1 / 3) and read["tokens_per_sec"] > 0


def test_micro_batches_keep_their_name_on_the_way():
    (first, _), (second, _) = timed([torch.ones(2)] * 3, 2)
    assert [type(first), len(first), len(second)] == [MicroBatches, 2, 1]
    assert type(to_device(first, META)) is MicroBatches
