import numpy as np
import pytest
import torch
from torch import nn

from course_lib.counters import count_events

READS = {
    "item": lambda t: t.sum().item(),
    "float": lambda t: float(t.sum()),
    "if": lambda t: 1 if t.sum() > 0 else 0,
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy(),
    "asarray": lambda t: np.asarray(t),
}


@pytest.mark.parametrize("read", READS)
def test_each_way_to_read_a_value_is_one_sync(read):
    tensor = torch.ones(3)
    with count_events() as counts:
        READS[read](tensor)
    assert counts.num_syncs == 1


def test_work_without_reading_is_no_sync():
    with count_events() as counts:
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        torch.stack([x.detach().sum(), x.grad.norm()])
    assert counts.num_syncs == 0


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {"foreach": False}])
def test_steps_and_forwards_are_counted_and_an_optimizers_own_counter_is_no_sync(options):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    with count_events(model) as counts:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_syncs) == (4, 4, 0)


def test_counting_ends_with_the_block_even_after_an_error():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="stop"), count_events(model) as counts:
        raise RuntimeError("stop")
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.ones(1).item()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_syncs) == (0, 0, 0)
