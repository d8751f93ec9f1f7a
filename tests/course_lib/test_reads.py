"""Where values leave torch: each way counts as many syncs as a device would wait; what waits for nothing, as none."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from course_lib.measuring import Counts, count_events

STEPS = 4
BUFFER = np.zeros(1, dtype=np.float32)
SHARED_BEFORE = torch.from_numpy(BUFFER)
OWN_BEFORE = torch.zeros(1)
READ_BEFORE = OWN_BEFORE.numpy()


def losses(counts: Callable[[Tensor], Any]) -> int:
    """Syncs of a loop that reads each loss in this way."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # as of an epoch before
    with count_events(model) as found:
        for _ in range(STEPS):
            loss = model(torch.ones(2, 3)).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            counts(loss.detach())
    assert found.num_optimizer_steps == STEPS
    return found.num_syncs


def by_array(loss: Tensor) -> None:
    array = np.zeros(1, dtype=np.float32)
    torch.from_numpy(array).copy_(loss)


def by_bytes(loss: Tensor) -> None:
    torch.frombuffer(bytearray(4), dtype=torch.float32).add_(loss)


def by_out(loss: Tensor) -> None:
    torch.add(loss, 0.0, out=torch.from_numpy(np.zeros((), dtype=np.float32)))


def by_averages(loss: Tensor) -> None:
    averages = torch.from_numpy(np.zeros(1, dtype=np.float32)), torch.ones(1)
    nn.functional.batch_norm(loss.expand(2, 1), *averages, training=True, momentum=1.0)


def by_address(loss: Tensor) -> None:
    ctypes.c_float.from_address(loss.data_ptr())


def by_error(loss: Tensor) -> None:
    with contextlib.suppress(IndexError, RuntimeError):
        torch.arange(3)[(loss * 0 + 7).long().reshape(1)]


READS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda loss: loss.item(),
    "float": float,
    "bool": bool,
    "index": lambda loss: [0][(loss * 0).long()],
    "contains": lambda loss: 1.0 in loss,
    "tolist": lambda loss: loss.tolist(),
    "format": lambda loss: f"{loss:.2f}",
    "format of a vector": lambda loss: f"{loss.reshape(1)}",
    "repr": repr,
    "print": lambda loss: print(loss, file=io.StringIO()),
    "numpy": lambda loss: loss.numpy(),
    "asarray": np.asarray,
    "np.float32": np.float32,
    "np.add": lambda loss: np.add(1.0, loss),
    "from_dlpack": lambda loss: np.from_dlpack(loss),
    "__dlpack__": lambda loss: loss.__dlpack__(),
    "pickle": pickle.dumps,
    "save": lambda loss: torch.save(loss, io.BytesIO()),
    "copy": copy.copy,
    "data_ptr": by_address,
    "untyped_storage": lambda loss: loss.untyped_storage(),
    "share_memory": lambda loss: loss.clone().share_memory_(),
    "a function for each value": lambda loss: loss.clone().apply_(lambda value: value),
    "a tensor of tensors": lambda loss: torch.tensor([loss]),
    "into an array": by_array,
    "into bytes": by_bytes,
    "out=": by_out,
    "into the averages of a norm": by_averages,
    "into an array that was there before": lambda loss: SHARED_BEFORE.copy_(loss),
    "into a tensor whose array was there before": lambda loss: OWN_BEFORE.copy_(loss),
    "an error that hangs on a value": by_error,
    "to the host": lambda loss: loss.cpu(),
    "to the host by name": lambda loss: loss.to("cpu"),
    "to the host, and read there": lambda loss: loss.cpu().item(),
    "to the host, computed with and read there": lambda loss: (loss.cpu() * 2).tolist(),
}


@pytest.mark.parametrize("way", READS)
@pytest.mark.filterwarnings("ignore:.*__array_(wrap|interface)?:DeprecationWarning", "ignore:TypedStorage")
def test_each_way_to_read_a_loss_is_a_sync(way: str) -> None:
    assert losses(READS[way]) == STEPS


def test_no_memory_is_read_in_silence_once_it_was_handed_out() -> None:
    total = torch.zeros(1)

    def first_by_numpy(loss: Tensor, seen: list[Any] = []) -> None:  # noqa: B006
        seen.append(total.numpy()) if not seen else total.add_(loss)

    assert losses(first_by_numpy) == STEPS


KEEPS: dict[str, Callable[[Tensor], Any]] = {
    "a sum": lambda loss: torch.zeros(()).add_(loss),
    "a tensor made of a number": lambda loss: torch.tensor(0.0).add_(loss),
    "to where the model is": lambda loss: loss.to(torch.device("cpu")),
    "to the host without waiting": lambda loss: loss.to("cpu", non_blocking=True),
    "another dtype": lambda loss: loss.to(torch.float64).double().float(),
    "data that come from an array": lambda loss: torch.from_numpy(np.ones(3)).mul_(2).to("cpu"),
    "a clone": lambda loss: loss.clone(),
    "rows by their numbers": lambda loss: loss.expand(3)[torch.tensor([0, 2])],
    "its shape": lambda loss: (loss.shape, loss.dtype, len(loss.reshape(1))),
}


@pytest.mark.parametrize("way", KEEPS)
def test_what_a_device_would_not_wait_for_is_no_sync(way: str) -> None:
    assert losses(KEEPS[way]) == 0


def test_what_was_brought_to_the_device_is_no_result_and_comes_back_by_a_sync() -> None:
    mask, device = torch.ones(4, dtype=torch.bool), torch.device("cpu")
    with count_events() as events:
        int(mask.cpu().sum())  # never left
        assert events.num_syncs == 0
        int(mask.to(device).sum().cpu())
        assert events.num_syncs == 1
        int(mask.to(device=device).cpu().sum())
        assert events.num_syncs == 2


def test_what_was_copied_to_the_host_is_read_there_for_nothing_until_it_is_written_to() -> None:
    model = nn.Linear(3, 5)
    with count_events(model) as counts:
        scores = model(torch.ones(1, 3)).detach()
        there = scores.cpu()
        [value.item() for value in there[0]]
        assert counts.num_syncs == 1
        scores.add_(model(torch.ones(1, 3)).detach())
        scores[0, 0].item()
    assert counts.num_syncs == 2


def test_each_event_is_told_before_it_is_counted_and_they_come_to_the_counts() -> None:
    model, told = nn.Embedding(9, 4), Counts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[tuple[str, int]] = []

    def on_event(name: str, amount: int) -> None:
        if name == "num_syncs":
            assert counts.num_syncs == len([one for one in seen if one[0] == name])
        seen.append((name, amount))
        told.note(name, amount)

    with count_events(model, on_event=on_event) as counts:
        for rows in (2, 3):
            hidden = model(torch.ones(rows, 5, dtype=torch.int64))
            (hidden @ hidden.transpose(1, 2)).sum().backward()
            optimizer.step()
            float(hidden.detach().sum())
    assert vars(told) == vars(counts)
    assert [name for name, _ in seen if name.startswith("num_")] == [
        *("num_forwards", "num_rows", "num_optimizer_steps", "num_syncs") * 2
    ]
    assert counts.total_flops > 0 < counts.peak_live_bytes
    with pytest.raises(ValueError, match="num_guesses"):
        told.note("num_guesses")


def test_the_tokens_of_a_forward_are_told_as_a_number_and_are_no_sync() -> None:
    class Model(nn.Linear):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(input_ids)

    seen: dict[str, int] = {}
    model, mask = Model(3, 2), torch.tensor([[True, True, False], [True, False, False]])
    for operators in (True, False):
        with count_events(model, operators=operators, on_event=seen.__setitem__) as counts:
            model(torch.ones(2, 3), mask)
        assert (seen["num_tokens"], counts.num_tokens, counts.num_syncs) == (3, 3, 0)
