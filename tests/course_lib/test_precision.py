"""Precision: what `auto` comes to and why; the fp16 step against its hand-written twin; an overflow skips a step."""

import copy
import io
from collections import Counter
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.base.errors import UserError
from course_lib.measuring.counters import count_events
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.training import precision as precision_module
from course_lib.training.loop import train_step
from course_lib.training.memory import apply_activation_checkpointing
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import (
    DTYPES,
    FULL_PRECISION,
    Precision,
    bf16_units,
    known_gain,
    layer_gain,
    resolve_precision,
)
from course_lib.training.reproducibility import weights_sha256
from course_lib.training.window import MicroBatches
from tests.benchmarks.made_csv import make_csv

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
ON_CPUS = [name for name in DTYPES if name != "tf32-mixed"]


def make_model(dropout=0.1):
    torch.manual_seed(3)
    sizes = {
        "vocab_size": 30,
        "num_classes": 3,
        "max_length": 12,
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 1,
    }
    return TextClassifier(ModelConfig(**sizes, dropout=dropout))


def make_batch(seed=0, rows=8):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 30, (rows, 12), generator=generator)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones(rows, 12, dtype=torch.bool),
        "labels": ids[:, 0] % 3,
    }


def plain_step(model, batch, optimizer, scaler, dtype):
    """fp16 as torch's documentation has it: scale, backward, unscale, clip, step, update."""
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype) if dtype != torch.float32 else nullcontext():
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits.float(), batch["labels"])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    return loss


@pytest.mark.parametrize("name", ON_CPUS)
@pytest.mark.parametrize("optimizer_name", ["adamw", "adafactor"])  # fused, and not
def test_a_step_in_any_precision_is_the_step_written_by_hand(name, optimizer_name):
    ours, theirs = make_model(), make_model()
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
    precision = resolve_precision(name, CPU)
    mine, other = (make_optimizer(model, optimizer_name, learning_rate=1e-2) for model in (ours, theirs))
    scaler = torch.amp.GradScaler("cpu", enabled=name == "16-mixed")
    for number in range(6):
        torch.manual_seed(number)  # dropout
        result = train_step(ours, make_batch(number), mine, max_norm=0.5, precision=precision)
        torch.manual_seed(number)
        loss = plain_step(theirs, make_batch(number), other, scaler, DTYPES[name])
        # Eight samples: the loop's sum × 1/8 and the twin's mean are then the same to the bit.
        assert torch.equal(result["loss"], loss.detach())
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
    if scaler.is_enabled():
        assert precision.scaler.get_scale() == scaler.get_scale()


def poison(model):
    """An infinite gradient, whatever the loss."""
    return model.head.bias.register_hook(lambda grad: grad * float("inf"))


@pytest.mark.parametrize("optimizer_name", ["adamw", "adafactor"])
def test_an_infinite_gradient_skips_the_step_and_halves_the_scale(optimizer_name):
    model, precision = make_model(), resolve_precision("16-mixed", CPU)
    optimizer = make_optimizer(model, optimizer_name, learning_rate=1e-2)
    train_step(model, make_batch(), optimizer, precision=precision)
    before = copy.deepcopy([model.state_dict(), optimizer.state_dict()["state"]])
    scale = precision.scaler.get_scale()
    handle = poison(model)
    result = train_step(model, make_batch(1), optimizer, precision=precision)
    handle.remove()
    assert not torch.isfinite(result["grad_norm"])
    assert torch.isfinite(result["loss"])
    torch.testing.assert_close(
        [model.state_dict(), optimizer.state_dict()["state"]], before, rtol=0.0, atol=0.0
    )
    assert precision.scaler.get_scale() == scale / 2
    train_step(model, make_batch(2), optimizer, precision=precision)
    assert not torch.equal(model.head.weight, before[0]["head.weight"])


def test_the_scale_is_saved_and_found_again():
    model, precision = make_model(), resolve_precision("16-mixed", CPU)
    optimizer = make_optimizer(model)
    handle = poison(model)
    for _ in range(3):
        train_step(model, make_batch(), optimizer, precision=precision)
    handle.remove()
    buffer = io.BytesIO()
    torch.save(precision.scaler.state_dict(), buffer)
    buffer.seek(0)
    resumed = resolve_precision("16-mixed", CPU)
    resumed.scaler.load_state_dict(torch.load(buffer, weights_only=True))
    assert resumed.scaler.get_scale() == precision.scaler.get_scale() == 65536 / 8


@pytest.mark.parametrize("name", ON_CPUS)
def test_a_step_reads_no_tensor(name):
    model, precision = make_model(), resolve_precision(name, CPU)
    optimizer = make_optimizer(model)
    train_step(model, make_batch(), optimizer, precision=precision)
    with count_events(model) as counts:
        train_step(model, make_batch(1), optimizer, precision=precision)
    assert (counts.num_syncs, counts.num_optimizer_steps) == (0, 1)


def test_products_are_in_the_format_and_weights_in_fp32():
    for name in ON_CPUS:
        dtype = DTYPES[name]
        model, precision = make_model(), resolve_precision(name, CPU)
        seen = []
        model.blocks[0].feed_forward_in.register_forward_hook(
            lambda _m, _i, out, seen=seen: seen.append(out.dtype)
        )
        train_step(model, make_batch(), make_optimizer(model), precision=precision)
        assert seen == [dtype]
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert (precision.scaler is not None) == (name == "16-mixed")


class Casts(TorchDispatchMode):
    """Counts tensors of each shape that are cast to 16 bits."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and result.dtype == torch.bfloat16:
            self.seen[tuple(args[0].shape)] += 1
        return result


def test_weights_are_cast_once_an_update_however_many_micro_batches_and_no_bit_changes(monkeypatch):
    def update(num_batches):
        model, precision = make_model(), resolve_precision("bf16-mixed", CPU)
        batches = MicroBatches(make_batch(number) for number in range(num_batches))
        with Casts() as casts:
            train_step(model, batches, make_optimizer(model), precision=precision)
        shapes = {tuple(parameter.shape) for parameter in model.parameters() if parameter.ndim == 2}
        return {shape: casts.seen[shape] for shape in shapes if casts.seen[shape]}, weights_sha256(model)

    for num_batches in (1, 4):
        casts, weights = update(num_batches)
        # The four matrices of the block, and the head's.
        assert casts == {(48, 16): 1, (16, 16): 1, (64, 16): 1, (16, 64): 1, (3, 16): 1}
    with monkeypatch.context() as patched:
        patched.setattr(Precision, "casts_once", lambda self: nullcontext())
        casts, same = update(4)
    assert set(casts.values()) == {4} and same == weights


def test_casts_that_are_kept_suit_blocks_that_are_computed_again():
    ends = set()
    for prepare in (lambda model: model, apply_activation_checkpointing):
        model, batches = prepare(make_model()), MicroBatches(make_batch(number) for number in range(3))
        torch.manual_seed(5)  # dropout
        train_step(model, batches, make_optimizer(model), precision=resolve_precision("bf16-mixed", CPU))
        ends.add(weights_sha256(model))
    assert len(ends) == 1


def test_autocast_is_off_around_backward_and_its_copies_are_gone_after_the_update():
    model, seen = make_model(), []
    model.head.weight.register_hook(lambda _: seen.append(torch.is_autocast_enabled("cpu")))
    train_step(model, make_batch(), make_optimizer(model), precision=resolve_precision("bf16-mixed", CPU))
    assert seen == [False] and not torch.is_autocast_enabled("cpu")
    with torch.no_grad():
        model.head.weight.fill_(2.0)
    with resolve_precision("bf16-mixed", CPU).autocast():
        assert model.head(torch.ones(1, 16)).eq(32 + model.head.bias.bfloat16()).all()


def test_full_precision_costs_nothing_per_step():
    assert FULL_PRECISION.autocast() is FULL_PRECISION.autocast()
    assert isinstance(FULL_PRECISION.autocast(), nullcontext)


def test_auto_on_a_cpu_goes_by_units_and_by_the_probe_which_is_asked_once(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    monkeypatch.setattr(precision_module, "bf16_units", lambda: ["amx_bf16"])
    for width, gain, name in ((256, 1.1, "32-true"), (128, 2.0, "bf16-mixed"), (256, 1.1, "32-true")):
        # A probe of now would say something else the third time.
        probe = 9.9 if len(list(tmp_path.iterdir())) == 2 else gain
        monkeypatch.setattr(precision_module, "layer_gain", lambda width, probe=probe: probe)
        resolved = resolve_precision("auto", CPU, width=width)
        assert resolved.name == name
        assert f"amx_bf16; a layer {width} wide ran {gain:.2f} ×" in resolved.reason
    monkeypatch.setattr(precision_module, "bf16_units", list)
    assert resolve_precision("auto", CPU) == Precision("32-true", "no bf16 units found in this CPU")
    assert known_gain(256) == 0


def test_the_probe_is_real_and_leaves_the_random_state_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    resolved = resolve_precision("auto", CPU, width=32)
    assert torch.equal(torch.get_rng_state(), before)
    assert resolved.name in DTYPES
    assert 0.01 < layer_gain(32) < 100
    assert all("bf16" in unit for unit in bf16_units())


def test_a_run_is_judged_at_its_end_in_its_own_precision(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    make_csv(tmp_path / "t.csv", num_rows=120)
    sizes = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "max_steps": 4}
    config = TrainConfig(data=str(tmp_path / "t.csv"), precision="bf16-mixed", monitor="loss", **sizes)
    record = run_training(config, tmp_path / "run", progress=False)
    rows = RunFolder(tmp_path / "run").read_metrics()
    (best,) = [row for row in rows if row["kind"] == "validation" and row["step"] == record["best"]["step"]]
    assert record["validation"]["loss"] == best["loss"]


def test_what_a_run_resolved_it_resolves_to_again():
    for name in ON_CPUS:
        assert (resolve_precision(name, CPU).name, resolve_precision(name, CPU).reason) == (name, "asked for")


def test_an_unknown_name_is_answered_with_those_that_are_known():
    with pytest.raises(
        UserError, match="no precision 'bf16': take auto or one of 32-true, tf32-mixed, bf16-mixed"
    ):
        resolve_precision("bf16", CPU)


def of_capability(monkeypatch, major):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (major, 0))


def test_tf32_is_chosen_by_name_and_only_where_there_are_units_for_it(monkeypatch):
    for device, major in ((CPU, 8), (GPU, 7)):
        of_capability(monkeypatch, major)
        with pytest.raises(
            UserError, match=rf"^tf32-mixed needs [^\n]+ here is {device}: take auto or 32-true$"
        ):
            resolve_precision("tf32-mixed", device)
    assert resolve_precision("32-true", GPU).reason == "asked for"  # there is no choice on such a GPU
    of_capability(monkeypatch, 8)
    assert resolve_precision("32-true", GPU).reason == "asked for; tf32-mixed would compute in TF32"
    with Precision("tf32-mixed", "").products():
        assert resolve_precision("32-true", GPU).reason == "asked for; torch is set to TF32"
    resolved = resolve_precision("tf32-mixed", GPU)
    assert (resolved.dtype, resolved.scaler) == (torch.float32, None)


def test_tf32_is_on_in_forward_and_backward_and_as_it_was_after_an_error_too():
    switch = torch.backends.cuda.matmul
    assert not switch.allow_tf32
    precision = Precision("tf32-mixed", "asked for", device_type="cuda")
    model, seen = make_model(), []
    model.head.register_forward_hook(lambda *_: seen.append(("forward", switch.allow_tf32)))
    model.head.weight.register_hook(lambda _: seen.append(("backward", switch.allow_tf32)))
    train_step(model, make_batch(), make_optimizer(model), precision=precision)
    assert seen == [("forward", True), ("backward", True)]
    with pytest.raises(ZeroDivisionError), precision.products():
        raise ZeroDivisionError
    assert not switch.allow_tf32
    seen.clear()
    train_step(model, make_batch(), make_optimizer(model))
    assert seen == [("forward", False), ("backward", False)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_auto_on_a_gpu():
    resolved = resolve_precision("auto", torch.device("cuda"))
    has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    assert resolved.name == ("bf16-mixed" if has_units else "16-mixed")
    assert (resolved.scaler is None) == has_units
