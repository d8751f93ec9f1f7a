"""GPUs where there is none: counts that are patched, fake tensors, and a CUDA that fails as soon as it is started."""

import sys

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.base.machine import hardware, memory_bytes, on_device, reset_peak_memory
from course_lib.distributed.ranks import device_of
from course_lib.runs import train as runs
from course_lib.runs.config import TrainConfig
from course_lib.runs.train import plan_training, run_training
from course_lib.training import loop
from course_lib.training.callbacks import Callback
from course_lib.training.evaluation import evaluate
from course_lib.training.memory import compile_model
from course_lib.training.reproducibility import rng_state, set_rng_state
from course_lib.training.window import Window
from tests.benchmarks.made_csv import make_csv
from tests.later import Later

fake_pg = Later("torch.testing._internal.distributed.fake_pg")
tensors = Later("torch.distributed.tensor")
mesh = Later("torch.distributed.device_mesh")

CPU, SECOND = torch.device("cpu"), torch.device("cuda", 1)


@pytest.fixture
def unused_gpus(monkeypatch):
    """A machine with two GPUs, on which nothing may start CUDA."""

    def never(*_, **__):
        raise AssertionError("CUDA was started")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for module in (torch.cuda, torch.cuda.random):
        monkeypatch.setattr(module, "device_count", lambda: 2)
        monkeypatch.setattr(module, "_lazy_init", never)


@pytest.fixture
def current(monkeypatch):
    """The GPU that torch takes where none is named, in a list of one; two are there."""
    number = [0]

    def exchange(index):
        before, number[0] = number[0], number[0] if index < 0 else index
        return before

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "_exchange_device", exchange)
    monkeypatch.setattr(torch.cuda, "_maybe_exchange_device", exchange)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: number[0])
    return number


class Stop(Exception):
    pass


def test_a_run_on_the_cpu_never_starts_cuda_and_tells_its_own_memory(tmp_path, monkeypatch, unused_gpus):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    make_csv(tmp_path / "a.csv", num_rows=60)

    class PowerCut(Callback):
        def on_step(self, state):
            if state.step == 9:
                raise Stop

    small = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_epochs": 8, "checkpoint_every_steps": 1}
    config = TrainConfig(
        data=str(tmp_path / "a.csv"),
        device="cpu",
        micro_batch_size="auto",
        global_batch_size=32,
        profile_steps=2,
        precision="32-true",
        **small,
    )
    plan_training(config, tmp_path / "plan")
    with pytest.raises(Stop):
        run_training(config, tmp_path / "run", progress=False, callbacks=[PowerCut()])
    record = run_training(config, tmp_path / "run", progress=False, resume=True)
    assert record["status"] == "finished"
    own = memory_bytes(CPU)
    assert 0.2 * own["memory_bytes"] < record["peak_memory_bytes"] <= own["peak_memory_bytes"]
    assert len(record["hardware"]["accelerators"]) == 2


def test_compiling_on_the_cpu_starts_no_cuda(unused_gpus):
    batch = {"input_ids": torch.zeros(2, 4), "attention_mask": None, "labels": torch.zeros(2)}

    def loss(model, batch):
        return model(batch["input_ids"]).sum(), 2

    _, report = compile_model(nn.Linear(4, 1), batch, loss=loss, num_micro_steps=1)
    assert "too few" in report["reason"]


def test_names_of_gpus_that_are_not_in_use_come_from_the_driver_s_tool(monkeypatch, unused_gpus):
    told = "NVIDIA H100 80GB HBM3\nNVIDIA H100 80GB HBM3\n"
    monkeypatch.setattr("course_lib.base.machine.subprocess.check_output", lambda *_, **__: told)
    assert hardware()["accelerators"] == told.splitlines()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # one is hidden, and which is not known
    assert hardware()["accelerators"] == ["unknown"]


def test_memory_is_that_of_the_device_that_is_asked_for(monkeypatch):
    """Also of a CPU run in a kernel where something else has used CUDA."""
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for name, value in {
        "memory_allocated": 5,
        "max_memory_allocated": 7,
        "reset_peak_memory_stats": None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: asked.append(device) or value)
    assert memory_bytes(CPU)["memory_bytes"] > 2**20
    reset_peak_memory(CPU)
    assert asked == []
    assert memory_bytes(SECOND) == {"memory_bytes": 5, "peak_memory_bytes": 7}
    reset_peak_memory(SECOND)
    assert asked == [SECOND] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_peak_on_the_cpu_is_forgotten():
    grown = torch.ones(100_000_000, dtype=torch.uint8)
    del grown
    before = memory_bytes(CPU)["peak_memory_bytes"]
    reset_peak_memory(CPU)
    assert memory_bytes(CPU)["peak_memory_bytes"] < before - 50_000_000


@pytest.mark.parametrize("start", [run_training, plan_training])
def test_a_run_sets_the_gpu_that_its_config_names(tmp_path, monkeypatch, current, start):
    seen = []

    def choose(config, folder, device, *_, **__):
        seen.append((device, current[0]))
        raise Stop

    monkeypatch.setattr(runs, "choose_model", choose)
    with pytest.raises(Stop):
        start(TrainConfig(data="docstrings", device="cuda:1"), tmp_path / "run")
    assert seen == [(SECOND, 1)]
    assert current == [0]  # who called has theirs back


def test_fit_computes_and_waits_on_the_model_s_gpu(current):
    seen = []

    class Batches:
        def __iter__(self):
            seen.append(current[0])
            raise Stop

    model = nn.Module()
    with FakeTensorMode():  # such tensors have a device, and no memory
        model.weight = nn.Parameter(torch.empty(2, device=SECOND))
    with pytest.raises(Stop):
        loop.fit(model, Batches(), torch.optim.SGD(model.parameters()))
    assert seen == [1] and current == [0]


def test_on_a_cpu_nothing_is_set(unused_gpus):
    with on_device(CPU):
        pass


@pytest.fixture
def offloaded(current):
    """A model whose one parameter rests on the CPU, split over two GPUs, as FSDP2 makes it with `cpu_offload`."""
    dist.init_process_group("fake", rank=0, world_size=2, store=fake_pg.FakeStore())
    try:
        gpus = mesh.init_device_mesh("cuda", (2,))
        whole = tensors.DTensor.from_local(
            torch.zeros(2), mesh.init_device_mesh("cpu", (2,)), [tensors.Shard(0)]
        )
        spec = type(whole._spec)(gpus, whole.placements, tensor_meta=whole._spec.tensor_meta)
        model = nn.Module()
        model.weight = nn.Parameter(tensors.DTensor(torch.zeros(2), spec, requires_grad=True))
        yield model
    finally:
        dist.destroy_process_group()


def test_batches_of_an_offloaded_model_go_to_where_it_computes(monkeypatch, current, offloaded):
    assert offloaded.weight.device == CPU
    current[0] = 1
    assert device_of(offloaded) == SECOND
    asked = []

    def to_device(batch, device):
        asked.append(device)
        raise Stop

    batch = (torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))
    optimizer = torch.optim.SGD(offloaded.parameters())
    for module, train in (
        ("loop", lambda: loop.fit(offloaded, [batch], optimizer)),
        ("loop", lambda: loop.train_one_epoch(offloaded, [batch], optimizer)),
        ("evaluation", lambda: evaluate(offloaded, [batch])),
        ("evaluation", lambda: evaluate(offloaded, [batch], loss=lambda model, batch: None)),
    ):
        monkeypatch.setattr(f"course_lib.training.{module}.to_device", to_device)
        with pytest.raises(Stop):
            train()
    assert asked == [SECOND] * 4


def test_losses_of_a_gpu_and_norms_of_offloaded_gradients_are_read_together():
    window = Window()
    with FakeTensorMode():
        for _ in range(2):
            metrics = {
                "loss": torch.zeros((), device=SECOND),
                "grad_norm": torch.zeros(()),
                "num_items": torch.zeros((), dtype=torch.int64, device=SECOND),
            }
            window.add((torch.zeros(4, 8), torch.zeros(4)), metrics)
        with pytest.raises(
            RuntimeError, match="numpy"
        ):  # they have no values: all but reading them went well
            window.read()


def test_the_random_state_of_an_apple_gpu_is_saved_and_put_back(monkeypatch):
    gpu = torch.Generator().manual_seed(3)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", gpu.get_state)
    monkeypatch.setattr(torch.mps, "set_rng_state", gpu.set_state)
    state = rng_state()
    drawn = torch.rand(3, generator=gpu)
    set_rng_state(state)
    assert torch.equal(torch.rand(3, generator=gpu), drawn)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    set_rng_state(state)  # resumed elsewhere
    set_rng_state(
        {name: value for name, value in rng_state().items() if name != "mps"}
    )  # a checkpoint of before


def test_random_states_of_gpus_in_use_are_put_back_where_there_are_as_many(monkeypatch):
    put_back, states = [], [torch.zeros(1), torch.ones(1)]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", put_back.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    state = rng_state()
    set_rng_state(state)
    assert put_back == [states]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    set_rng_state(state)
    assert len(put_back) == 1
