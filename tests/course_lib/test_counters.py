"""Each count against a number worked out by hand."""

import contextlib
import copy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.measuring.counters import count_events, peak_bytes
from course_lib.measuring.counts import Counts
from course_lib.measuring.threads import unfollowed
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.training.memory import apply_activation_checkpointing

READS = {
    "item": lambda t: t.sum().item(),
    "float": lambda t: float(t.sum()),
    "if": lambda t: 1 if t.sum() > 0 else 0,
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy(),
    "asarray": lambda t: np.asarray(t),
    "equal": lambda t: torch.equal(t, t + 1),
    "allclose": lambda t: torch.allclose(t, t),
    "rows by a mask": lambda t: t[t > 0],
    "nonzero": lambda t: t.nonzero(),
    "sparse": lambda t: t.to_sparse(),
    "as large as its places": lambda t: torch.sparse_coo_tensor(t.long()[:1].reshape(1, 1), torch.ones(1)),
    "split at places": lambda t: torch.tensor_split(torch.ones(9), t.long()),
    "packed by lengths": lambda t: nn.utils.rnn.pack_padded_sequence(torch.ones(9, 3, 1), t.long()),
}


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("read", READS)
def test_each_way_to_read_a_value_is_one_sync(read, mode):
    tensor = torch.ones(3)
    with mode(), count_events() as counts:
        READS[read](tensor)
    assert counts.num_syncs == 1


@pytest.mark.parametrize("by_name", [True, False], ids=["by name", "by place"])
def test_a_closure_is_no_part_of_the_optimizer(by_name):
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    with count_events(model) as counts:
        loss = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
    assert (counts.num_syncs, counts.num_optimizer_steps, counts.num_unwatched) == (1, 1, 0)
    assert losses == [float(loss)]


def test_a_hook_or_a_number_of_the_authors_is_no_part_of_the_optimizer():
    model = torch.nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = torch.ones(3)

    class Rate(float):
        def __neg__(self):
            return -losses[0].item()

    optimizer.register_step_pre_hook(lambda *_: losses[1].item() and None)
    optimizer.register_step_post_hook(lambda *_: losses[2].item())
    with count_events(model) as counts:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.param_groups[0]["lr"] = Rate(0.1)
        optimizer.step()
    assert (counts.num_syncs, counts.num_optimizer_steps, counts.num_unwatched) == (3, 1, 0)


def test_an_optimizer_of_the_authors_is_no_part_of_torch():
    model = torch.nn.Linear(3, 1)

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            self.norm = model.weight.grad.norm().item()
            return super().step(closure)

    optimizer = Own(model.parameters(), lr=0.1)
    with count_events(model) as counts:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert counts.num_syncs == 1


def test_a_copy_of_the_model_is_seen_by_the_same_eyes():
    class Masked(nn.Linear):
        def forward(self, rows, attention_mask):
            return super().forward(rows)

    model, heard = Masked(3, 1), []
    with count_events(model, on_event=lambda name, amount: heard.append((name, amount))) as counts:
        copy.deepcopy(model)(torch.ones(2, 3), attention_mask=torch.ones(2, 3))
    assert counts.num_syncs == 0 and ("num_tokens", 6) in heard


def test_an_operator_that_fails_tells_nothing_of_the_next_one():
    weight = torch.ones(3, 2)
    with count_events() as counts:
        for rows in (torch.ones(1, 5), torch.ones(1, 3)):
            with contextlib.suppress(RuntimeError):
                rows @ weight
    assert counts.num_syncs == 1  # that it fails may hang on values


def test_work_without_reading_is_no_sync():
    with count_events() as counts:
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        torch.stack([x.detach().sum(), x.grad.norm()])
        nn.utils.clip_grad_norm_([x], 1.0)
    assert counts.num_syncs == 0


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {"foreach": False}])
def test_steps_and_forwards_are_counted_and_an_optimizers_own_counter_is_no_sync(options):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    with count_events(model) as counts, count_events(model, operators=False) as light:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_syncs) == (4, 4, 0)
    assert (counts.num_rows, counts.max_rows, counts.num_positions, counts.pad_fraction) == (8, 2, 0, 0)
    assert (light.num_forwards, light.num_optimizer_steps, light.num_rows) == (4, 4, 8)
    assert (light.flops, light.peak_live_bytes, light.num_unwatched) == ({}, 0, 0)
    assert counts.num_unwatched == 0


def test_accumulating_is_many_forwards_and_one_step_and_a_step_that_the_scaler_skips_is_none():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with count_events(model) as counts:
        for rows in (4, 4, 1):
            model(torch.ones(rows, 3)).sum().backward()
        optimizer.step()
    assert (counts.num_forwards, counts.num_optimizer_steps) == (3, 1)
    assert (counts.num_rows, counts.max_rows) == (9, 4)
    scaler = torch.amp.GradScaler("cpu")
    with count_events(model) as counts:
        scaler.scale(model(torch.full((1, 3), torch.inf)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert (counts.num_forwards, counts.num_optimizer_steps) == (1, 0)


def test_only_optimizers_of_the_model_step_it():
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    with count_events(model) as counts, count_events() as everything:
        for one in (model, other, other):
            one(torch.ones(1, 3)).sum().backward()
            torch.optim.SGD(one.parameters(), lr=0.1).step()
    assert (counts.num_optimizer_steps, everything.num_optimizer_steps) == (1, 3)


def test_counting_ends_with_the_block_even_after_an_error():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="stop"), count_events(model) as counts:
        raise RuntimeError("stop")
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.ones(1).item()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_syncs) == (0, 0, 0)
    assert (counts.flops, counts.peak_live_bytes, counts.peak_saved_bytes) == ({}, 0, 0)


def make_model(num_layers=2, dropout=0.0):
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "num_classes": 3, "max_length": 64, "num_heads": 2, "d_model": 32}
    return TextClassifier(ModelConfig(**sizes, num_layers=num_layers, dropout=dropout))


def texts(*lengths, width):
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    return torch.full((len(lengths), width), 7) * mask, mask


@pytest.mark.parametrize("by_name", [False, True])
def test_padded_tokens(by_name):
    model = make_model()
    with count_events(model, operators=False) as counts:
        for batch in (texts(5, 2, width=8), texts(4, width=4)):
            ids, mask = batch
            model(input_ids=ids, attention_mask=mask) if by_name else model(ids, mask)
    assert (counts.num_positions, counts.num_tokens, counts.num_padded_tokens) == (20, 11, 9)
    assert counts.pad_fraction == 0.45
    assert (counts.num_rows, counts.max_rows) == (3, 2)


def test_flops_of_a_linear_layer():
    layer, x = nn.Linear(5, 7), torch.ones(3, 5)
    with count_events() as counts:
        loss = layer(x).sum()
    assert counts.flops == {"float32": 2 * 3 * 5 * 7}
    with count_events() as counts:
        loss.backward()  # of the weight alone: x needs no gradient
    assert counts.flops == {"float32": 2 * 3 * 5 * 7}
    with torch.inference_mode(), count_events() as counts:
        layer(x)
    assert counts.flops == {"float32": 2 * 3 * 5 * 7}


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_flops_of_attention_are_two_products_whatever_kernel_runs(backend):
    batch, heads, width, size = 2, 3, 16, 8
    q = torch.ones(batch, heads, width, size)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), sdpa_kernel(backend), count_events() as counts:
            F.scaled_dot_product_attention(q, q, q)
        assert counts.flops == {"float32": 2 * batch * heads * 2 * width * width * size}


def test_flops_by_dtype_under_autocast_and_a_few_in_full_precision():
    model, x = nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 10)), torch.ones(4, 30)
    with count_events(model) as full:
        model(x).sum().backward()
    with count_events(model) as mixed:
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
        (logits.float() @ torch.ones(10, 3)).sum().backward()
    # The weights' gradients, and that of the first layer's result; x needs none.
    products = 2 * 4 * (2 * 30 * 20 + 3 * 20 * 10)
    outside = 2 * 2 * 4 * 10 * 3  # the product written out, and its gradient
    assert full.flops == {"float32": products}
    assert mixed.flops == {"bfloat16": products, "float32": outside}
    assert mixed.share_of_flops("bfloat16", "float16") == products / (products + outside)


def test_flops_of_a_training_step_by_closed_form():
    model, (ids, mask) = make_model(num_layers=3), texts(8, 8, width=8)
    with sdpa_kernel(SDPBackend.MATH), count_events(model) as counts:
        model(ids, mask).sum().backward()
    tokens, d = 16, 32
    weights = sum(p.numel() for p in model.blocks.parameters() if p.ndim == 2)
    attention = 2 * 2 * 2 * 8 * 8 * d  # two products, two texts
    head = 2 * 2 * d * 3
    mean = 2 * tokens * d  # over the real tokens, a product with the mask; whose gradient nobody needs
    # Backward is twice the forward: once towards the input, once towards the weights.
    assert counts.flops == {"float32": 3 * (2 * tokens * weights + 3 * attention + head) + 2 * mean}


def test_saved_bytes_by_hand():
    x = torch.ones(100, requires_grad=True)
    with count_events() as counts:
        y = x.exp()  # keeps its result, 400 bytes
        (y * y).sum()  # keeps y twice: one storage
    assert counts.peak_saved_bytes == 400
    model = nn.Linear(10, 20)
    with count_events(model) as counts:
        for _ in range(3):
            model(torch.ones(5, 10)).relu().sum().backward()
    # The input, which the weight's gradient needs, and relu's result; freed by each backward; not the weight.
    assert counts.peak_saved_bytes == 5 * 10 * 4 + 5 * 20 * 4
    with torch.no_grad(), count_events(model) as counts:
        model(torch.ones(5, 10)).relu()
    assert counts.peak_saved_bytes == 0


def test_saved_bytes_halve_in_bf16():
    x = torch.ones(1000)
    with count_events() as full:
        x.clone().requires_grad_().exp()
    with count_events() as half:
        x.bfloat16().requires_grad_().exp()
    assert (full.peak_saved_bytes, half.peak_saved_bytes) == (4000, 2000)


def test_activation_checkpointing_saves_less_computes_more_and_both_are_exact():
    batch = texts(*[16] * 8, width=16)
    counts = []
    for change in (lambda model: model, apply_activation_checkpointing):
        model = change(make_model(num_layers=4)).train()
        with sdpa_kernel(SDPBackend.MATH), count_events(model) as counted:
            model(*batch).sum().backward()
        counts.append(counted)
    plain, checkpointed = counts
    assert checkpointed.peak_saved_bytes < 0.1 * plain.peak_saved_bytes
    assert checkpointed.peak_live_bytes < 0.45 * plain.peak_live_bytes
    tokens, d, width = 8 * 16, 32, 16
    products = 2 * tokens * d * (3 * d + d + 4 * d)  # of a block, but for the last, where recomputing stops:
    attention = 2 * 2 * tokens * width * d  # backward has all it needs before it
    assert checkpointed.total_flops - plain.total_flops == 4 * (products + attention)


def test_live_bytes_by_hand_and_watching_saved_tensors_changes_nothing():
    weight = torch.ones(1000, requires_grad=True)

    def step():
        a = weight * 2  # 4,000 bytes, then 8,000, then 4,000 again
        b = a + 1
        del a
        return b.sum()

    with count_events() as counts:
        step()
    assert counts.peak_live_bytes == 8000
    model, batch = make_model(), texts(16, 9, 16, width=16)

    def train():
        model.zero_grad()
        model(batch[0], batch[1]).sum().backward()

    alone = peak_bytes(train, torch.device("cpu"))
    with count_events(model) as counts:
        train()
    assert alone <= counts.peak_live_bytes <= alone + 16  # the number of real tokens


def test_counting_changes_no_number():
    ended = []
    for counting in (False, True):
        model = make_model(dropout=0.1).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(1)

        def train(model=model, optimizer=optimizer):
            for _ in range(3):
                optimizer.zero_grad()
                model(*texts(5, 16, width=16)).logsumexp(-1).sum().backward()
                optimizer.step()

        if counting:
            with count_events(model):
                train()
        else:
            train()
        ended.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ended, strict=True))


def test_a_thread_that_begins_is_counted_and_one_that_was_there_or_switches_modes_off_is_reported_as_unwatched():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()

    with count_events(model) as counts:
        step()
        thread = threading.Thread(target=lambda: (step(), torch.ones(1).item()))
        thread.start()
        thread.join()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_unwatched) == (2, 2, 0)
    assert counts.num_syncs == 1
    of_others = unfollowed()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert unfollowed() == of_others + 1
        with count_events(model) as counts:
            pool.submit(step).result()
    assert (counts.num_forwards, counts.num_optimizer_steps, counts.num_unwatched) == (1, 1, 2)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):  # in a thread that stays, what comes later is counted as well
            with count_events(model) as counts:
                pool.submit(step).result()
            assert (counts.num_optimizer_steps, counts.num_unwatched) == (1, 0)
            pool.submit(step).result()
        assert unfollowed() == of_others
    assert counts.num_optimizer_steps == 1
    with count_events(model) as counts, torch._C._DisableTorchDispatch():
        step()
    assert counts.num_unwatched == 2


def test_a_compiled_model_is_counted_as_if_it_were_not():
    found = []
    for change in (lambda model: model, lambda model: torch.compile(model, backend="aot_eager")):
        model, batch = change(make_model()), texts(5, 16, width=16)
        model(*batch).sum().backward()
        model.zero_grad()
        with count_events(model) as counts:
            model(*batch).sum().backward()
        found.append((counts.flops, counts.peak_saved_bytes, counts.peak_live_bytes, counts.num_unwatched))
    assert found[0] == found[1]


def test_what_is_written_into_memory_of_before_is_counted_once():
    model, room = nn.Linear(4, 4), torch.zeros(100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):  # its averages are there before the second
        with count_events(model) as counts:
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            room[:10].copy_(torch.ones(10))
            room[:10].add_(1)
            room[50:].zero_()
            torch.zeros(5).add_(1)
        assert counts.old_bytes_written == 4 * (10 + 50)


def test_products_without_numbers_are_no_work():
    with count_events() as counts:
        torch.ones(8, 8, device="meta") @ torch.ones(8, 8, device="meta")
        torch.sparse_coo_tensor(size=(8, 8)) @ torch.ones(8, 8)
    assert counts.flops == {}


def test_counts_of_nested_blocks_stand_apart():
    with count_events() as outer:
        torch.ones(1).item()
        with count_events() as inner:
            torch.ones(1).item()
    assert isinstance(outer, Counts)
    assert (outer.num_syncs, inner.num_syncs) == (2, 1)


@pytest.mark.further
def test_all_reduces_of_two_processes(tmp_path):
    script = Path(__file__).parent / "scripts" / "count_all_reduces.py"
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(script),
    ]
    run = subprocess.run([*launch, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    for rank in (0, 1):
        found = torch.load(tmp_path / f"rank{rank}.pt")
        assert found["num_buckets"] > 1
        # One optimizer step of four micro-batches: each bucket crosses once, on the last of them alone.
        assert found["no_sync"] == (4, 1, found["num_buckets"], found["num_buckets"])
        assert found["plain"] == (4, 1, 4 * found["num_buckets"], 4 * found["num_buckets"])
        assert found["by_hand"] == (1, 1, 0, found["num_parameters"])
        assert found["light"] == found["num_buckets"]
