import dataclasses

import pytest

from course_lib.base.errors import UserError
from course_lib.base.settings import to_yaml
from course_lib.cli.common import parse_settings
from course_lib.runs.compare import differences
from course_lib.runs.config import TrainConfig, known_keys, read_config


def test_yaml_round_trip_and_a_fingerprint_that_ignores_order(tmp_path):
    config = TrainConfig(data="a.csv", learning_rate=1e-3, max_steps=5, max_norm=float("inf"))
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config.to_dict()))
    assert TrainConfig.from_dict(read_config(path)) == config
    turned = TrainConfig.from_dict(dict(reversed(config.to_dict().items())))
    assert turned.fingerprint == config.fingerprint


def test_the_fingerprint_changes_with_every_value_that_shapes_the_weights():
    base = TrainConfig(data="a.csv")
    changed = {
        "validation": 0.2, "vocab_size": 300, "max_length": 9, "d_model": 128, "num_layers": 3, "num_heads": 2,
        "dropout": 0.0, "micro_batch_size": 8, "learning_rate": 1.0, "final_learning_rate_ratio": 0.5,
        "warmup_fraction": 0.0, "weight_decay": 0.0, "max_norm": 2.0, "max_epochs": 2, "max_steps": 2, "seed": 1,
        "is_deterministic": True, "device": "cpu", "monitor": "accuracy", "validate_every_steps": 3,
        "init_from": "runs/a", "model": "ngrams",
        "task": "token-classification", "hf_model": "bert", "lora_rank": 4, "grad_accum_steps": 2,
        "global_batch_size": 128, "lr_scaling": "sqrt", "base_batch_size": 64, "optimizer": "sgd",
        "layer_decay": 0.9, "embedding_lr_ratio": 3.0, "label_smoothing": 0.1, "schedule": "cosine", "num_cycles": 2,
        "precision": "16-mixed", "activation_checkpointing": True, "compile": True, "sharding": "fsdp",
        "cpu_offload": True, "early_stopping_patience": 2, "min_delta": 0.1,
    }  # fmt: skip
    without_effect = {
        "data": "b.csv", "log_every_steps": 3, "checkpoint_every_steps": 3, "checkpoint_every_seconds": 5.0,
        "keep_checkpoints": 2, "use_async_checkpoints": True, "price_per_hour": 1.0, "currency": "USD",
        "target": 0.9, "trackers": "mlflow", "profile_steps": 3, "text_column": "body", "label_column": "intent",
        "encoding": "cp1252", "has_header": False, "validation_data": "dev.csv", "test_data": "test.csv",
        "time_limit": 60.0,
    }  # fmt: skip
    only_with_others = {"budget", "use_low_bit_base"}  # and the two they need are above
    assert {*changed, *without_effect, *only_with_others} == set(known_keys())
    for key, value in changed.items():
        assert dataclasses.replace(base, **{key: value}).fingerprint != base.fingerprint, key
    for key, value in without_effect.items():
        assert dataclasses.replace(base, **{key: value}).fingerprint == base.fingerprint, key


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("lerning_rate", "learning_rate"), ("lr", "learning_rate"), ("batch_size", "micro_batch_size"),
     ("epochs", "max_epochs"), ("warmup", "warmup_fraction"), ("heads", "num_heads")],
)  # fmt: skip
def test_an_unknown_key_names_the_nearest_known_one(wrong, right):
    with pytest.raises(UserError, match=f"unknown key '{wrong}'; the nearest known key is '{right}'"):
        TrainConfig.from_dict({"data": "a.csv", wrong: 1})


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("max_epochs", 2.5, "a whole number"),
        ("max_epochs", 0, "at least 1"),
        ("seed", True, "a whole number"),
        ("seed", -1, "between 0"),
        ("learning_rate", "fast", "a number"),
        ("learning_rate", 0, "above 0"),
        ("learning_rate", float("nan"), "a number"),
        ("learning_rate", None, "a number, got empty"),
        ("max_norm", 0, "inf for no clipping"),
        ("dropout", 1, "below 1"),
        ("validation", 1.0, "below 1"),
        ("vocab_size", 10, "between 259"),
        ("d_model", 30, "multiple of num_heads"),
        ("monitor", "f1", "one of loss, accuracy"),
        ("is_deterministic", "perhaps", "true or false"),
        ("data", "", "data is empty"),
        ("data", ["a"], "must be text"),
        ("max_length", 10**400, "a whole number"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_in_one_line(key, value, says):
    with pytest.raises(UserError, match=says) as caught:
        TrainConfig.from_dict({"data": "a.csv", key: value})
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_as_people_write_them():
    values = parse_settings(
        ["learning_rate=1e-3", "max_epochs=2", "max_norm=.inf", "data=x.csv", "max_steps="]
    )
    config = TrainConfig.from_dict(values)
    assert (config.learning_rate, config.max_epochs, config.max_steps) == (1e-3, 2, None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("data: [a", "config.yaml, line"),
        ("- a\n- b", "holds a list"),
        ("just words", "holds a text"),
        ("dta: a.csv", "nearest known key is 'data'"),
        ("3: x", "unknown key '3'"),
    ],
)
def test_a_file_that_is_no_config_is_named(tmp_path, text, says):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=says):
        read_config(path)


def test_unreadable_files_and_broken_settings(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"data: \xe9.csv")
    with pytest.raises(UserError, match="not UTF-8"):
        read_config(tmp_path / "latin.yaml")
    with pytest.raises(UserError, match="key=value"):
        parse_settings(["seed"])
    with pytest.raises(UserError, match="quote it"):
        parse_settings(["data=[a"])


def test_differences_name_old_and_new():
    old, new = TrainConfig(data="a"), TrainConfig(data="b", seed=3, log_every_steps=1)
    assert differences(old.to_dict(), new.to_dict()) == ["seed: 0 → 3"]
