"""Each sickness is seen, named and explained; a sound run is called healthy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.runs.watching.health import LOOK_AT, health_table, health_text


def sound_run(num_logs=40):
    """Loss falls, a cosine schedule, steady speed, validation beside it."""
    records = []
    for i in range(1, num_logs + 1):
        loss = 0.4 + 1.6 * math.exp(-4 * i / num_logs)
        records.append(
            {
                "kind": "train",
                "step": 20 * i,
                "loss": loss,
                "grad_norm": 1 + 0.3 * math.sin(i),
                "learning_rate": 1e-3 * (1 + math.cos(math.pi * i / num_logs)) / 2,
                "seconds": 2.0,
                "data_wait_fraction": 0.02,
                "pad_fraction": 0.04,
                "num_tokens": 9000,
                "tokens_per_sec": 4500 + 100 * (i % 3),
            }
        )
        if i % 5 == 0:
            records.append({"kind": "validation", "step": 20 * i, "loss": loss + 0.05, "accuracy": 0.9})
            records.append({"kind": "epoch", "step": 20 * i, "weight_norm": 3.0, "num_nonfinite": 0})
    return records


def each_train(change):
    records = sound_run()
    train = [row for row in records if row["kind"] == "train"]
    for i, row in enumerate(train):
        row.update(change(i, row))
    return records


def overfitted():
    records = sound_run()
    for row in records:
        if row["kind"] == "validation" and row["step"] > 300:
            row["loss"] *= 1 + (row["step"] - 300) / 300
    return records


SICK = {
    "numbers": each_train(lambda i, row: {"loss": None} if i == 7 else {}),
    "training loss": each_train(lambda i, row: {"loss": 1.38 + 0.001 * math.sin(i)}),
    "validation loss": overfitted(),
    "gradient norm": each_train(lambda i, row: {"grad_norm": 30.0} if i == 25 else {}),
    "data wait": each_train(lambda i, row: {"data_wait_fraction": 0.2}),
    "padding": each_train(lambda i, row: {"pad_fraction": 0.6}),
    "throughput": each_train(lambda i, row: {"tokens_per_sec": 4500 - 60 * i}),
}


def test_a_sound_run_is_healthy_in_every_signal():
    rows = health_table(sound_run())
    assert {row["signal"] for row in rows} == set(LOOK_AT)
    assert [row for row in rows if row["status"] != "healthy"] == []
    assert all(row["why"] and not row["look_at"] for row in rows)


@pytest.mark.parametrize("signal", SICK)
def test_each_sickness_is_named_with_its_number_and_where_to_look(signal):
    rows = {row["signal"]: row for row in health_table(SICK[signal])}
    assert set(SICK) == set(LOOK_AT)
    row = rows[signal]
    assert row["status"] == "warning" and row["look_at"] == LOOK_AT[signal]
    assert any(character.isdigit() for character in row["why"])
    others = {name for name, other in rows.items() if other["status"] == "warning"} - {signal}
    assert not others
    assert f"warning  {signal}" in health_text(list(rows.values()))


def test_the_numbers_are_right():
    rows = {row["signal"]: row for row in health_table(overfitted())}
    assert rows["validation loss"]["value"] == 300
    assert {row["signal"]: row for row in health_table(SICK["padding"])}["padding"]["value"] == pytest.approx(
        0.6
    )
    assert "step 520" in {r["signal"]: r for r in health_table(SICK["gradient norm"])}["gradient norm"]["why"]


@given(st.integers(0, 12), st.floats(0, 1e300) | st.none())
def test_short_and_broken_runs_are_judged_without_an_error(num_logs, loss):
    records = sound_run(num_logs) if num_logs else []
    for row in records:
        if "loss" in row:
            row["loss"] = loss
    rows = health_table(records)
    assert all(row["status"] in ("healthy", "warning") for row in rows)
    health_text(rows)
