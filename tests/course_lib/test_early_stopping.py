"""Early stopping against a plain twin over random sequences, resumed anywhere, and inside `fit`."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.training.callbacks import EarlyStopping, TrainState
from course_lib.training.loop import fit
from course_lib.training.optim import make_optimizer

VALUES = st.lists(st.floats(0, 1) | st.sampled_from([math.nan, math.inf, 0.5]), max_size=30)


def plain_stop(values, mode, patience, min_delta):
    """Index of the validation after which training ends, or None. By lists alone."""
    best, bad = [], 0
    for index, value in enumerate(values):
        if mode == "min":
            is_better = not math.isnan(value) and (not best or best[-1] - value > min_delta)
        else:
            is_better = not math.isnan(value) and (not best or value - best[-1] > min_delta)
        if is_better:
            best.append(value)
            bad = 0
        else:
            bad += 1
        if bad == patience:
            return index
    return None


def feed(stopping, state, values, start=0):
    for index, value in enumerate(values, start=start):
        state.step = 10 * (index + 1)
        stopping.on_record(state, {"kind": "train", stopping.monitor: -1.0})  # says nothing
        stopping.on_record(state, {"kind": "validation", stopping.monitor: value})
        if state.should_stop:
            return index
    return None


@given(
    VALUES,
    st.sampled_from(["min", "max"]),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.05]),
    st.integers(0, 30),
)
def test_stops_where_the_twin_stops_also_when_resumed(values, mode, patience, min_delta, cut):
    def make():
        return EarlyStopping("accuracy", mode, patience, min_delta)

    expected = plain_stop(values, mode, patience, min_delta)
    assert feed(make(), TrainState(), values) == expected
    first, state = make(), TrainState()
    stopped = feed(first, state, values[:cut])
    if stopped is None:
        second = make()
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        stopped = feed(second, state, values[cut:], start=cut)
    assert stopped == expected


def test_the_reason_names_metric_best_and_step():
    stopping, state = EarlyStopping("macro_f1", "max", 2, 0.01), TrainState()
    assert feed(stopping, state, [0.5, 0.7, 0.705, 0.6]) == 3
    assert state.stop_reason == "macro_f1 has not improved in 2 validations; best 0.7 at step 20"


def test_fit_ends_when_it_says_so():
    torch.manual_seed(0)
    model = TextClassifier(
        ModelConfig(vocab_size=20, num_classes=2, max_length=8, d_model=8, num_layers=1, num_heads=1)
    )
    batch = {
        "input_ids": torch.randint(0, 20, (4, 8)),
        "attention_mask": torch.ones(4, 8, dtype=torch.bool),
        "labels": torch.tensor([0, 1, 0, 1]),
    }
    state = TrainState()
    optimizer = make_optimizer(model, learning_rate=0.0)  # nothing ever improves
    callbacks = [EarlyStopping(patience=3)]
    fit(
        model, [batch], optimizer, validation_batches=[batch], max_epochs=50, callbacks=callbacks, state=state
    )
    assert state.step == 4  # the first is the best, then three in vain
    assert "loss has not improved in 3 validations" in state.stop_reason


@pytest.mark.parametrize("values", [{"mode": "lowest"}, {"patience": 0}, {"min_delta": -0.1}])
def test_values_that_cannot_be_are_refused(values):
    with pytest.raises(UserError, match="need mode min or max"):
        EarlyStopping(**values)


def test_a_metric_that_is_not_measured_is_named_with_those_that_are():
    with pytest.raises(UserError, match=r"no metric 'f1' to monitor; it has .*loss, accuracy"):
        record = {"kind": "validation", "loss": 0.4, "accuracy": 0.9}
        EarlyStopping("f1").on_record(TrainState(), record)
