"""The search for the largest micro-batch: exact, careful, true to what the process really takes."""

import json
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.distributed.ranks import Ranks
from course_lib.measuring.counters import peak_bytes
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.runs import components
from course_lib.runs.config import TrainConfig
from course_lib.training import micro_batch
from course_lib.training.loop import train_step
from course_lib.training.micro_batch import (
    SAFETY,
    available_memory_bytes,
    find_executable_micro_batch_size,
    largest_micro_batch_size,
)
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import resolve_precision
from course_lib.training.reproducibility import weights_sha256

CPU = torch.device("cpu")
OUT_OF_MEMORY = [
    MemoryError(),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("could not create a primitive"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: not enough memory: you tried to allocate 9"
    ),
    RuntimeError("CUDA error: out of memory"),  # the driver
    RuntimeError("CUDA driver error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError(
        "MPS backend out of memory (MPS allocated: 8.88 GB, other allocations: 1.2 GB, max allowed: 9.07 GB)"
    ),
    RuntimeError("Invalid buffer size: 24.00 GiB"),  # Metal
    RuntimeError("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"),
]


@given(
    fixed=st.integers(0, 500),
    slope=st.integers(1, 50),
    limit=st.integers(0, 5000),
    max_size=st.integers(1, 300),
)
def test_finds_the_largest_that_fits_and_runs_nothing_far_above_it(fixed, slope, limit, max_size):
    tried = []

    def try_step(size):
        tried.append(size)
        return fixed + slope * size

    fitting = [size for size in range(1, max_size + 1) if fixed + slope * size <= limit]
    if not fitting:
        with pytest.raises(UserError, match="no micro-batch fits in"):
            find_executable_micro_batch_size(try_step, max_size=max_size, memory_limit_bytes=limit)
        return
    size, reason = find_executable_micro_batch_size(try_step, max_size=max_size, memory_limit_bytes=limit)
    assert size == max(fitting)
    assert f"{size} samples" in reason
    for index, one in enumerate(
        tried
    ):  # once two sizes have fitted, one that would not is predicted, not run
        assert one <= size or sum(earlier <= size for earlier in tried[:index]) < 2
    assert max(tried) <= 2 * size


@given(st.sampled_from(OUT_OF_MEMORY), st.integers(1, 100))
def test_running_out_of_memory_is_an_answer(error, capacity):
    def try_step(size):
        if size > capacity:
            raise error
        return 0

    assert find_executable_micro_batch_size(try_step, max_size=64, memory_limit_bytes=1)[0] == min(
        capacity, 64
    )


def test_any_other_error_passes_through():
    def try_step(size):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        find_executable_micro_batch_size(try_step, max_size=8, memory_limit_bytes=100)


def test_live_bytes_are_those_of_tensors_made_and_not_yet_freed():
    weight = torch.ones(1000, requires_grad=True)

    def step():
        a = weight * 2  # 4,000 bytes, then 8,000, then 4,000 again
        b = a + 1
        view = b[10:]  # a view takes nothing
        del a
        c = view.view(990)
        del b, view
        return c.sum() + torch.ones(500).sum()

    assert peak_bytes(step, CPU) == 8000
    assert peak_bytes(lambda: weight.detach().view(10, 100).t(), CPU) == 0
    # Saved for backward by autograd alone: x.exp() keeps its result.
    assert peak_bytes(lambda: weight.exp().exp().exp().sum(), CPU) == 3 * 4000 + 4


def test_live_bytes_agree_with_torchs_own_profiler():
    from torch.profiler import ProfilerActivity, profile

    model, batch = make_model(), make_batch(6)

    def step():
        model.zero_grad()
        model(batch["input_ids"], batch["attention_mask"]).sum().backward()

    step()
    model.zero_grad()
    counted = peak_bytes(step, CPU)
    model.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        live += change.nbytes()
        peak = max(peak, live)
    assert counted == pytest.approx(peak, rel=0.02)


def make_model(d_model=32, max_length=64):
    torch.manual_seed(3)
    sizes = {"vocab_size": 50, "num_classes": 3, "max_length": max_length, "num_heads": 2, "num_layers": 2}
    return TextClassifier(ModelConfig(**sizes, d_model=d_model))


def make_batch(size, length=64):
    return {
        "input_ids": torch.randint(0, 50, (size, length)),
        "attention_mask": torch.ones(size, length, dtype=torch.bool),
        "labels": torch.zeros(size, dtype=torch.int64),
    }


@pytest.mark.parametrize("name", ["32-true", "bf16-mixed", "16-mixed"])
def test_the_largest_batch_of_a_model_leaves_no_trace(name):
    model, precision = make_model(), resolve_precision(name, CPU)
    weights, random_state = weights_sha256(model), torch.get_rng_state()
    limit = 12_000_000
    size, reason = largest_micro_batch_size(model, make_batch, precision=precision, memory_limit_bytes=limit)
    assert 4 < size < 100
    assert f"of 12.0 MB; {size + 1} needs" in reason
    assert weights_sha256(model) == weights
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(p.grad is None for p in model.parameters())
    if precision.scaler is not None:
        assert precision.scaler.get_scale() == 65536
    again = largest_micro_batch_size(model, make_batch, precision=precision, memory_limit_bytes=limit)
    assert again == (size, reason)  # a count: the same each time


def test_the_optimizer_s_state_counts_beside_the_activations():
    limit = 12_000_000
    size, _ = largest_micro_batch_size(make_model(128), make_batch, memory_limit_bytes=limit)

    def peak_of_the_second_step(size):
        model, batch = make_model(128), make_batch(size)
        optimizer = make_optimizer(model)
        return peak_bytes(lambda: [train_step(model, batch, optimizer) for _ in range(2)], CPU)

    assert peak_of_the_second_step(size) <= limit < peak_of_the_second_step(size + 1)


def test_while_gradients_add_up_they_are_there_beside_the_activations():
    limit = 12_000_000
    alone, _ = largest_micro_batch_size(make_model(128), make_batch, memory_limit_bytes=limit)
    added, _ = largest_micro_batch_size(
        make_model(128), make_batch, memory_limit_bytes=limit, grad_accum_steps=8
    )
    assert 1 <= added < alone


def test_on_cuda_all_but_a_tenth_of_what_is_free_may_be_taken_and_the_peak_is_forgotten(monkeypatch):
    """Counts of a GPU that is not there: 9 MB free in the driver's eyes, 3 MB that torch holds and does not use."""
    told, gpu = [], torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (9_000_000, 10**9))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5_000_000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2_000_000)
    monkeypatch.setattr(torch.cuda, "_exchange_device", lambda index: 0)
    monkeypatch.setattr(torch.cuda, "_maybe_exchange_device", lambda index: 0)
    monkeypatch.setattr(
        torch.cuda, "reset_peak_memory_stats", lambda device: told.append((device, "forgotten"))
    )
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")  # each has a GPU of its own
    monkeypatch.setattr(micro_batch, "device_of", lambda model: gpu)
    monkeypatch.setattr(micro_batch, "to_device", lambda batch, device: batch)

    def count(steps, device):
        told.append((device, "a step"))
        return peak_bytes(steps, CPU)

    monkeypatch.setattr(micro_batch, "peak_bytes", count)
    size, reason = largest_micro_batch_size(make_model(), make_batch)
    assert f"auto: {size} samples" in reason and "of 10.8 MB" in reason
    assert told[-2:] == [(gpu, "a step"), (gpu, "forgotten")]


@pytest.mark.parametrize(
    ("device", "config", "expected"),
    [
        ("cuda:0", {}, 9000),  # as many as there are
        ("cpu", {}, 512),
        ("cuda:0", {"global_batch_size": 96}, 48),
        ("cpu", {"global_batch_size": 1}, 1),
    ],
)
def test_what_a_run_may_find_at_most(device, config, expected):
    config = TrainConfig(data="docstrings", micro_batch_size="auto", **config)
    assert components._max_auto_batch(config, 9000, torch.device(device), Ranks(0, 0, 2)) == expected


@pytest.mark.parametrize(
    ("found", "whole", "expected"), [(48, 96, 48), (47, 96, 24), (30, 96, 24), (7, None, 7)]
)
def test_a_global_batch_is_a_multiple_of_what_was_found(found, whole, expected):
    config = TrainConfig(data="docstrings", micro_batch_size="auto", global_batch_size=whole)
    assert components._largest_divisor(found, config, Ranks(0, 0, 2)) == expected


def test_no_sample_fits():
    with pytest.raises(
        UserError, match=r"no micro-batch fits in 0.1 MB: 1 needs .* MB; take a lower max_length"
    ):
        largest_micro_batch_size(make_model(), make_batch, memory_limit_bytes=100_000)


SEARCH = """
import json, resource, sys
import torch
from tests.course_lib.test_micro_batch import make_batch, make_model
from course_lib.training.loop import train_step
from course_lib.training.micro_batch import available_memory_bytes, largest_micro_batch_size
from course_lib.training.optim import make_optimizer

def resident(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

model = make_model(128, 128)
train_step(model, make_batch(1, 128), make_optimizer(model))  # libraries are loaded
model.zero_grad()
limit = None
if sys.argv[1] == "rlimit":
    used = resident("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (used + 250_000_000,) * 2)
    free = available_memory_bytes(torch.device("cpu"))
    if sys.argv[2:]:  # believe that there is more than there is: the allocator must say no
        limit = 10**12
else:
    limit, free = 120_000_000, 0
before = resident("VmRSS")
size, reason = largest_micro_batch_size(model, lambda n: make_batch(n, 128), memory_limit_bytes=limit, max_size=2048)
print(json.dumps([size, reason, free, resident("VmHWM") - before]))
"""


def search(*arguments):
    run = subprocess.run(
        [sys.executable, "-c", SEARCH, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.further
@linux
def test_the_process_really_takes_about_what_was_allowed():
    # What the allocator has kept from before is taken again without a trace, so the largest of three counts.
    found = [search("limit") for _ in range(3)]
    assert all(size > 4 and grown < 120e6 / SAFETY for size, _, _, grown in found), found
    assert max(grown for *_, grown in found) > 0.7 * 120e6, found


@pytest.mark.further
@linux
def test_the_process_s_own_limit_is_minded():
    size, reason, free, _ = search("rlimit")
    assert 150e6 < free < 260e6
    assert size > 4
    assert "needs" in reason


@pytest.mark.further
@linux
def test_where_the_limit_is_too_high_the_allocator_s_refusal_is_an_answer():
    size, reason, _, _ = search("rlimit", "believe")
    assert size > 4
    assert "needs inf MB" in reason


def test_available_memory_is_a_positive_number_below_the_machine_s():
    import psutil

    assert 0 < available_memory_bytes(CPU) <= psutil.virtual_memory().total
