"""Schedules against numbers worked out by hand and against torch's own classes; resumed at any step; drawn."""

import io
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import lr_scheduler

from course_lib.base.errors import UserError
from course_lib.training.schedules import (
    SCHEDULES,
    Schedule,
    make_schedule,
    plot_schedule,
    scaled_learning_rate,
    schedule_values,
    warmup_cosine,
)

BY_HAND = [
    (("constant", 4), [1, 1, 1, 1, 1]),
    (("constant", 4, 2), [0.5, 1, 1, 1, 1]),
    (("plateau", 4, 2), [0.5, 1, 1, 1, 1]),
    (("linear", 4), [1, 0.75, 0.5, 0.25, 0, 0]),
    (("linear", 6, 2, 0.5), [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.5]),
    (("cosine", 4), [1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2, 0]),
    (("cosine", 6, 4, 0.2), [0.25, 0.5, 0.75, 1, 1, 0.6, 0.2]),
    (("cosine-restarts", 4, 0, 0.0, 2), [1, 0.5, 1, 0.5, 0, 0]),
    (("cosine-restarts", 7, 1, 0.1, 3), [1, 1, 0.55, 1, 0.55, 1, 0.55, 0.1]),
    (("step", 6), [1, 1, 0.1, 0.1, 0.01, 0.01, 0.01]),
    (("step", 7, 1, 0.05), [1, 1, 1, 0.1, 0.1, 0.05, 0.05]),
    (("one-cycle", 10, 2), [0.04, 0.52, 1, *(0.5 * (1 + np.cos(np.pi * np.arange(1, 8) / 8))), 0]),
]


def optimizer_of(*peaks):
    return torch.optim.SGD([{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": peak} for peak in peaks])


def rates(optimizer, schedule, num_steps):
    found = []
    for _ in range(num_steps):
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    return np.array(found)


@pytest.mark.parametrize("arguments, factors", BY_HAND, ids=lambda value: str(value[:2]))
def test_factors_worked_out_by_hand(arguments, factors):
    schedule = Schedule(*arguments)
    assert [schedule(step) for step in range(len(factors))] == pytest.approx(factors, abs=1e-12)


@pytest.mark.parametrize(
    "arguments, twin",
    [
        (("cosine", 40, 0, 0.1), lambda o: lr_scheduler.CosineAnnealingLR(o, 40, eta_min=0.1)),
        (("linear", 40, 0, 0.1), lambda o: lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=40)),
        (
            ("cosine-restarts", 40, 0, 0.1, 4),
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10, eta_min=0.1),
        ),
        (("step", 39), lambda o: lr_scheduler.StepLR(o, 13, gamma=0.1)),
        (
            ("one-cycle", 40, 12),
            lambda o: lr_scheduler.OneCycleLR(
                o, 1.0, 41, pct_start=13 / 41, final_div_factor=1e12, cycle_momentum=False
            ),
        ),
        (
            ("linear", 40, 8),
            lambda o: lr_scheduler.SequentialLR(
                o,
                [lr_scheduler.LinearLR(o, 1 / 8, 1.0, 7), lr_scheduler.LinearLR(o, 1.0, 0.0, 32)],
                milestones=[8],
            ),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_the_numbers_are_those_of_torchs_classes(arguments, twin):
    name, max_steps = arguments[:2]
    optimizer = optimizer_of(1.0)
    theirs = rates(optimizer, twin(optimizer), max_steps)[:, 0]
    numbers = dict(zip(("warmup_steps", "final_ratio", "num_cycles"), arguments[2:], strict=False))
    assert schedule_values(name, 1.0, max_steps, **numbers) == pytest.approx(theirs, abs=1e-9)


def shapes():
    return st.integers(1, 60).flatmap(
        lambda max_steps: st.fixed_dictionaries(
            {
                "max_steps": st.just(max_steps),
                "warmup_steps": st.integers(0, max_steps),
                "final_ratio": st.floats(0, 1),
                "num_cycles": st.integers(1, 5),
            }
        )
    )


@given(name=st.sampled_from(SCHEDULES), numbers=shapes())
def test_every_schedule_is_what_was_drawn_for_every_group_and_stays_between_0_and_the_peak(name, numbers):
    optimizer = optimizer_of(0.3, 0.02)
    found = rates(optimizer, make_schedule(optimizer, name, **numbers), numbers["max_steps"])
    assert np.array_equal(found[:, 0], schedule_values(name, 0.3, **numbers))
    assert np.array_equal(found[:, 1], schedule_values(name, 0.02, **numbers))
    assert (found[:, 0] > 0).all() or numbers["final_ratio"] == 0 or numbers["max_steps"] == 1
    assert (found[:, 0] <= 0.3 * (1 + 1e-12)).all()


def plain_plateau(losses, *, peak, floor):
    """Halve after three in a row that are not below the best by a ten-thousandth of it."""
    rate, best, bad, rates = peak, float("inf"), 0, []
    for loss in losses:
        best, bad = (loss, 0) if loss < best * (1 - 1e-4) else (best, bad + 1)
        if bad == 3:
            rate, bad = max(rate / 2, floor), 0
        rates.append(rate)
    return rates


@given(st.lists(st.floats(0.1, 5.0), max_size=40), st.integers(0, 40))
def test_plateau_halves_like_the_twin_and_resumes_anywhere(losses, cut):
    def make():
        optimizer = optimizer_of(0.4)
        return optimizer, make_schedule(optimizer, "plateau", max_steps=100, warmup_steps=2, final_ratio=0.1)

    optimizer, schedule = make()
    schedule.step_metric(9.0)  # during the warmup: does not count
    for _ in range(2):
        optimizer.step()
        schedule.step()
    found = []
    for number, loss in enumerate(losses):
        if number == cut:
            saved = torch.load(save([optimizer.state_dict(), schedule.state_dict()]), weights_only=True)
            optimizer, schedule = make()
            optimizer.load_state_dict(saved[0])
            schedule.load_state_dict(saved[1])
        optimizer.step()
        schedule.step()
        schedule.step_metric(loss)
        found.append(optimizer.param_groups[0]["lr"])
    assert found == pytest.approx(plain_plateau(losses, peak=0.4, floor=0.04))


def save(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("name", SCHEDULES)
def test_resumed_at_any_step_the_rates_are_the_same_to_the_bit(name):
    def make():
        torch.manual_seed(0)
        optimizer = optimizer_of(0.3, 0.02)
        return optimizer, make_schedule(
            optimizer, name, max_steps=20, warmup_steps=4, final_ratio=0.1, num_cycles=3
        )

    whole = rates(*make(), 20)
    for cut in range(20):
        optimizer, schedule = make()
        first = rates(optimizer, schedule, cut)
        saved = torch.load(save([optimizer.state_dict(), schedule.state_dict()]), weights_only=True)
        optimizer, schedule = make()
        schedule.load_state_dict(saved[1])
        optimizer.load_state_dict(saved[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rest = rates(optimizer, schedule, 20 - cut)
        assert np.array_equal(np.concatenate([first.reshape(-1, 2), rest]), whole)


def test_warmup_cosine_is_the_cosine_schedule():
    optimizer = optimizer_of(1.0)
    found = rates(optimizer, warmup_cosine(optimizer, warmup_steps=4, max_steps=20, final_ratio=0.1), 22)[
        :, 0
    ]
    assert found[:5] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])
    assert (np.diff(found[4:]) <= 0).all()
    assert found[12] == pytest.approx(0.55)
    assert found[20] == found[21] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "numbers, message",
    [
        ({"name": "cosin"}, "no schedule 'cosin': take one of constant, linear, cosine"),
        ({"warmup_steps": 11}, "warmup_steps <= max_steps.*warmup_steps=11"),
        ({"max_steps": 0}, "max_steps >= 1"),
        ({"final_ratio": 1.5}, "final_ratio <= 1"),
        ({"num_cycles": 0}, "num_cycles >= 1"),
    ],
)
def test_numbers_that_make_no_schedule_are_refused_in_one_line(numbers, message):
    with pytest.raises(UserError, match=message):
        make_schedule(optimizer_of(1.0), **{"name": "cosine", "max_steps": 10} | numbers)


@pytest.mark.parametrize("name", SCHEDULES)
def test_any_schedule_can_be_drawn_before_training(name, tmp_path):
    figure = plot_schedule(name, 3e-3, 50, warmup_steps=5, final_ratio=0.1, num_cycles=2)
    (line,) = figure.axes[0].lines
    drawn = schedule_values(name, 3e-3, 50, warmup_steps=5, final_ratio=0.1, num_cycles=2)
    assert np.array_equal(line.get_ydata(), drawn)
    figure.savefig(tmp_path / "schedule.svg")
    assert (tmp_path / "schedule.svg").stat().st_size > 1000


def test_the_learning_rate_scales_with_the_batch():
    assert scaled_learning_rate("none", 0.1, 8192, 256) == 0.1
    assert scaled_learning_rate("linear", 0.1, 8192, 256) == pytest.approx(3.2)  # Goyal et al., 2017
    assert scaled_learning_rate("sqrt", 0.1, 4096, 256) == pytest.approx(0.4)
    assert scaled_learning_rate("linear", 0.1, 64, 256) == pytest.approx(0.025)
    with pytest.raises(UserError, match="none, sqrt, linear"):
        scaled_learning_rate("square", 0.1, 64, 256)
