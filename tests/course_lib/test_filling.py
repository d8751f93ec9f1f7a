"""The micro-batch that fills a device: by laws of how long a step takes, and by real steps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.runs import components
from course_lib.training.memory import ENOUGH, filling_micro_batch_size, smallest_filling
from course_lib.training.reproducibility import weights_sha256
from tests.course_lib.test_memory import make


def batch_of(size):
    ids = torch.arange(1, 7).repeat(size, 1)
    return {"input_ids": ids, "attention_mask": ids > 0, "labels": ids[:, 0]}


@given(launching=st.floats(1e-4, 1e-1), of_each=st.floats(1e-7, 1e-3), largest=st.integers(1, 5000))
def test_the_size_is_the_smallest_power_of_two_that_is_fast_enough(launching, of_each, largest):
    """A step takes what its launches take, however small, and then grows with the batch."""

    def seconds_of(size):
        return max(launching, of_each * size)

    found, reason = smallest_filling(seconds_of, largest)
    sizes = [2**power for power in range(13) if 2**power < largest] + [largest]
    rates = {size: size / seconds_of(size) for size in sizes}
    assert found == next(size for size in sizes if rates[size] >= ENOUGH * max(rates.values()))
    assert reason.startswith(f"auto: {found} samples fill the device: ")


def test_it_ends_soon_after_nothing_is_gained_and_not_at_one_size_that_is_slow():
    tried = []

    def seconds_of(size):
        tried.append(size)
        return 1.9 if size == 16 else max(1.0, size / 128)

    assert smallest_filling(seconds_of, 10**6)[0] == 128
    assert tried == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_a_size_that_fails_for_want_of_memory_is_none():
    def make_batch_of(size):
        if size > 4:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return batch_of(size)

    found, _ = filling_micro_batch_size(make(d_model=16, num_layers=1), make_batch_of, 64)
    assert found <= 4

    def breaks(size):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        filling_micro_batch_size(make(d_model=16, num_layers=1), breaks, 64)


def test_real_steps_leave_model_and_random_numbers_as_they_were():
    model = make(d_model=16, num_layers=1)
    before, weights = torch.get_rng_state(), weights_sha256(model)
    found, reason = filling_micro_batch_size(model, batch_of, 16)
    assert found in (1, 2, 4, 8, 16) and "samples/s" in reason
    assert weights_sha256(model) == weights and torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert components.filling_micro_batch_size is filling_micro_batch_size
