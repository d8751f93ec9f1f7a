"""Precision: what `auto` comes to and why; the fp16 step against its hand-written twin; an overflow skips a step."""

import copy
import io
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

from course_lib.base.errors import UserError
from course_lib.measuring.counters import count_events
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.training import precision as precision_module
from course_lib.training.loop import train_step
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

CPU = torch.device("cpu")


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


@pytest.mark.parametrize("name", DTYPES)
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


@pytest.mark.parametrize("name", DTYPES)
def test_a_step_reads_no_tensor(name):
    model, precision = make_model(), resolve_precision(name, CPU)
    optimizer = make_optimizer(model)
    train_step(model, make_batch(), optimizer, precision=precision)
    with count_events(model) as counts:
        train_step(model, make_batch(1), optimizer, precision=precision)
    assert (counts.num_syncs, counts.num_optimizer_steps) == (0, 1)


def test_products_are_in_the_format_and_weights_in_fp32():
    for name, dtype in DTYPES.items():
        model, precision = make_model(), resolve_precision(name, CPU)
        seen = []
        model.blocks[0].feed_forward_in.register_forward_hook(
            lambda _m, _i, out, seen=seen: seen.append(out.dtype)
        )
        train_step(model, make_batch(), make_optimizer(model), precision=precision)
        assert seen == [dtype]
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert (precision.scaler is not None) == (name == "16-mixed")


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


def test_what_a_run_resolved_it_resolves_to_again():
    for name in DTYPES:
        assert (resolve_precision(name, CPU).name, resolve_precision(name, CPU).reason) == (name, "asked for")


def test_an_unknown_name_is_answered_with_those_that_are_known():
    with pytest.raises(
        UserError, match="no precision 'bf16': take auto or one of 32-true, bf16-mixed, 16-mixed"
    ):
        resolve_precision("bf16", CPU)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_auto_on_a_gpu():
    resolved = resolve_precision("auto", torch.device("cuda"))
    has_units = torch.cuda.is_bf16_supported(including_emulation=False)
    assert resolved.name == ("bf16-mixed" if has_units else "16-mixed")
    assert (resolved.scaler is None) == has_units
