"""DDP moves what learns: frozen buffers once, those that training changes at each forward. Processes are real ones."""

import pytest
import torch
from torch import nn

from course_lib.distributed import moving_buffers
from course_lib.models import NgramClassifier, add_lora, quantize_frozen
from tests.course_lib.scripts.small import SCRIPTS, make_model, torchrun


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("buffers")
    torchrun(SCRIPTS / "two_buffers.py", folder)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


def test_a_step_of_adapters_on_a_low_bit_base_sends_gradients_alone(two_processes):
    for result in two_processes:
        found, plain = result["low bit"], result["low bit, plain"]
        assert found["sent"] == {"gradients": found["learns"]}
        # What DDP does unless it is told: the base at each step, several times what is learnt.
        assert plain["sent"]["buffers"] == plain["held"] > plain["sent"]["gradients"]
        assert all(map(torch.equal, found["weights"], plain["weights"]))


def test_a_frozen_base_is_the_first_processs_from_the_beginning(two_processes):
    first, second = (result["first"] for result in two_processes)
    assert all(map(torch.equal, first, second)) and len(first) > 0


def test_the_averages_of_a_batch_norm_travel_as_in_plain_ddp(two_processes):
    for result in two_processes:
        found, plain = result["batch norm"], result["batch norm, plain"]
        assert found["sent"] == plain["sent"] and found["sent"]["buffers"] == found["held"]
        for name in ("buffers", "weights"):
            assert all(map(torch.equal, found[name], plain[name]))


def test_before_a_judgement_all_have_the_averages_that_are_saved(two_processes):
    assert all(torch.equal(result["shared"], torch.zeros(8)) for result in two_processes)


def test_which_buffers_may_move():
    assert moving_buffers(quantize_frozen(add_lora(make_model(), rank=2))) == []
    assert moving_buffers(NgramClassifier("classification", 50, 3)) == []
    norm = nn.BatchNorm1d(3)
    assert [id(buffer) for buffer in moving_buffers(nn.Sequential(norm))] == [id(b) for b in norm.buffers()]
    own = nn.Module()
    own.register_buffer("average", torch.zeros(2))
    own.register_buffer("positions", torch.arange(2), persistent=False)
    assert [buffer.shape for buffer in moving_buffers(own)] == [(2,)] and len(list(own.buffers())) == 2
