import random

import numpy as np
import pytest
import torch

from course_lib.training.reproducibility import rng_state, seed_everything, set_rng_state, weights_sha256


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(2).tolist()


def test_a_seed_fixes_every_generator():
    seed_everything(5)
    first = draw()
    seed_everything(5)
    assert draw() == first
    seed_everything(6)
    assert all(a != b for a, b in zip(draw(), first, strict=True))
    with pytest.raises(ValueError, match="seed"):
        seed_everything(2**32)


def test_the_state_of_every_generator_survives_a_file_read_safely(tmp_path):
    seed_everything(5)
    draw()  # leaves a cached Gaussian behind in two of them
    torch.save(rng_state(), tmp_path / "rng.pt")
    expected = [draw(), draw()]
    seed_everything(0)
    set_rng_state(torch.load(tmp_path / "rng.pt", weights_only=True))
    assert [draw(), draw()] == expected


def test_deterministic_refuses_what_is_not():
    try:
        seed_everything(0, deterministic=True)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_the_hash_sees_names_types_shapes_and_every_bit():
    base = {"a": torch.zeros(2, 3), "b": torch.ones(1)}
    same = {"b": torch.ones(1), "a": torch.zeros(3, 2).t()}
    assert weights_sha256(base) == weights_sha256(same)
    negative_zero = torch.zeros(2, 3)
    negative_zero[1, 2] = -0.0
    for other in (
        {"a": torch.zeros(3, 2), "b": torch.ones(1)},
        {"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.ones(1)},
        {"c": torch.zeros(2, 3), "b": torch.ones(1)},
        {"a": negative_zero, "b": torch.ones(1)},
    ):
        assert weights_sha256(other) != weights_sha256(base)
    assert len(weights_sha256({"scalar": torch.tensor(1), "empty": torch.zeros(0)})) == 64
