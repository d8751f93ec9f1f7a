"""Batches on their way to a GPU: what is asked of torch, in which order. Torch's streams are stand-ins that note what
is asked of them; where there is a GPU, the values are compared too."""

from contextlib import contextmanager

import pytest
import torch

from course_lib.training import window
from course_lib.training.window import to_device

GPU = torch.device("cuda", 0)
HERE = torch.device("meta")  # where the stand-in for a GPU keeps its tensors


class Stream:
    def __init__(self, name, asked):
        self.name, self.asked = name, asked

    def wait_stream(self, other):
        self.asked.append((f"{self.name} waits for", other.name))


@pytest.fixture
def asked(monkeypatch):
    """What was asked of a GPU that is not there, in order; each copy with the stream that makes it."""
    found, current = [], []
    computing, copying = Stream("computing", found), Stream("copying", found)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: computing)
    monkeypatch.setattr(window, "_copy_stream", lambda device: copying)

    @contextmanager
    def stream(entered):
        current.append(entered.name)
        yield
        current.pop()

    def to(tensor, device, non_blocking=False):
        found.append(("copied by", (current or ["computing"])[-1], tensor.is_pinned(), non_blocking))
        return torch.empty_like(tensor, device=HERE)

    pinned = set()

    def pin(tensor):
        copied = tensor.clone()
        pinned.add(id(copied))
        kept.append(copied)  # an id is a tensor's own for as long as that lives
        found.append(("pinned",))
        return copied

    kept = []
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: id(tensor) in pinned)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda tensor, used: found.append(("kept until", used.name))
    )
    return found


def test_a_batch_is_pinned_copied_aside_and_waited_for_by_the_stream_that_computes(asked):
    batch = {"input_ids": torch.ones(2, 3), "labels": torch.ones(2), "name": "a"}
    there = to_device(batch, GPU)
    assert there["input_ids"].device == HERE and there["name"] == "a" and batch["labels"].device.type == "cpu"
    one = [("pinned",), ("copied by", "copying", True, True), ("kept until", "computing")]
    assert asked == [*one, *one, ("computing waits for", "copying")]


def test_what_is_pinned_already_is_not_pinned_again(asked):
    pinned = torch.ones(2).pin_memory()
    asked.clear()
    to_device([pinned], GPU)
    assert asked[0] == ("copied by", "copying", True, True)


def test_what_cannot_be_pinned_waits_and_does_not_say_otherwise(asked):
    sparse = torch.eye(3).to_sparse()
    to_device((sparse,), GPU)
    assert asked == [("copied by", "computing", False, False), ("computing waits for", "copying")]


def test_elsewhere_than_on_cuda_nothing_is_pinned_and_nothing_is_said_not_to_block(asked):
    to_device({"x": torch.ones(2)}, HERE)
    assert asked == [("copied by", "computing", False, False)]


def test_a_batch_that_is_there_is_left_alone(asked):
    batch = {"x": torch.ones(2)}
    assert to_device(batch, torch.device("cpu")) is batch and asked == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_values_arrive_whole_while_the_gpu_is_busy_and_the_memory_is_reused():
    busy = torch.randn(4096, 4096, device=GPU)
    sums = []
    for number in range(50):
        product = busy @ busy
        batch = to_device({"x": torch.full((1 << 20,), float(number))}, GPU)
        sums.append(batch["x"].mean() + 0 * product[0, 0])
        del batch
    assert torch.stack(sums).cpu().tolist() == [float(number) for number in range(50)]
