"""int8 base weights: bytes counted, error bounded, gradients those of the rounded weights written out."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.models.lora import add_lora, merge_lora
from course_lib.models.low_bit import Int8Linear, quantize, quantize_frozen
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.training.loop import train_step


def make(task="classification"):
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "num_classes": 3, "max_length": 16, "d_model": 32, "num_layers": 2}
    return make_model(ModelConfig(task=task, dropout=0.0, **sizes))


def make_batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(10) < torch.tensor([10, 7, 4, 2])[:, None]
    ids = torch.randint(3, 60, (4, 10), generator=generator) * mask
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([0, 1, 2, 1])}


def num_bytes(module):
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 40),
    exponent=st.integers(-44, 37),
    seed=st.integers(0, 2**31),
)
def test_no_weight_is_off_by_more_than_half_a_step_of_its_row(rows, columns, exponent, seed):
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 10.0**exponent
    weight[0] = 0.0
    int8, scale = quantize(weight)
    assert int8.dtype == torch.int8 and scale.shape == (rows, 1)
    error = (int8 * scale).double() - weight.double()
    bound = weight.abs().amax(dim=1, keepdim=True).double() / 254
    # 1e-5: the scale itself is rounded to fp32; 1e-43: below the smallest normal number there are few digits.
    assert (error.abs() <= bound * (1 + 1e-5) + 1e-43).all()
    assert torch.equal(int8[0], torch.zeros(columns, dtype=torch.int8))


def test_a_layer_takes_a_quarter_of_the_bytes_and_keeps_none_for_backward():
    linear = nn.Linear(512, 256)
    int8 = Int8Linear(linear)
    assert num_bytes(int8) == 256 * 512 + 256 * 4 + 256 * 4  # weight, scale, bias
    assert num_bytes(int8) < 0.26 * num_bytes(linear)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        int8(torch.randn(3, 512, requires_grad=True))
    assert {tensor.data_ptr() for tensor in saved} == {int8.weight.data_ptr(), int8.scale.data_ptr()}


def test_twin_with_the_rounded_weight_written_out():
    torch.manual_seed(1)
    linear = nn.Linear(20, 12)
    layer = Int8Linear(linear)
    scale = linear.weight.detach().abs().max(dim=1, keepdim=True).values / 127
    rounded = (linear.weight.detach() / scale).round() * scale
    x, twin_x = (torch.linspace(-1, 1, 60).view(3, 20).requires_grad_() for _ in range(2))
    out = layer(x)
    twin = F.linear(twin_x, rounded, linear.bias)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), out)  # evaluation takes another road
    out.square().sum().backward()
    twin.square().sum().backward()
    torch.testing.assert_close(out, twin)
    torch.testing.assert_close(x.grad, twin_x.grad)
    assert not any(name == "weight" for name, _ in layer.named_parameters())


def test_under_autocast_the_product_is_in_bf16_and_the_gradient_in_fp32():
    layer, x = Int8Linear(nn.Linear(8, 4)), torch.randn(2, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    torch.testing.assert_close(x.grad, (layer.weight * layer.scale).sum(0).expand(2, 8), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("task", ["classification", "language-modelling"])
def test_adapters_learn_on_a_low_bit_base_as_on_the_rounded_base(task):
    model = quantize_frozen(add_lora(make(task), rank=2))
    assert sum(isinstance(layer, Int8Linear) for layer in model.modules()) == 8
    twin = add_lora(make(task), rank=2)
    with torch.no_grad():
        for int8, layer in zip(
            [m for m in model.modules() if isinstance(m, Int8Linear)],
            [m.base for m in twin.modules() if hasattr(m, "lora_a")],
            strict=True,
        ):
            layer.weight.copy_(int8.weight * int8.scale)
    whole = make(task)
    blocks = num_bytes(model.blocks) - 4 * sum(
        p.numel() for name, p in model.blocks.named_parameters() if "lora" in name
    )
    assert blocks < 0.31 * num_bytes(whole.blocks)
    frozen = {name: tensor.clone() for name, tensor in model.named_buffers()}
    for one in (model, twin):
        optimizer = torch.optim.AdamW([p for p in one.parameters() if p.requires_grad], lr=1e-2)
        for seed in range(5):
            batch = make_batch(seed)
            if task == "language-modelling":
                batch["labels"] = batch["input_ids"].roll(-1, dims=1)
            train_step(one, batch, optimizer)
    learned = dict(model.named_parameters())
    for name, parameter in twin.named_parameters():
        if "lora" in name or "head" in name:
            torch.testing.assert_close(learned[name], parameter, rtol=1e-4, atol=1e-6)
    assert all(torch.equal(tensor, frozen[name]) for name, tensor in model.named_buffers())


def test_saved_loaded_and_merged_into_a_plain_model():
    model = quantize_frozen(add_lora(make(), rank=2))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_b" in name:
                parameter.normal_()
    batch = make_batch()
    before = model.eval()(batch["input_ids"], batch["attention_mask"])
    other = quantize_frozen(add_lora(make(), rank=2))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(batch["input_ids"], batch["attention_mask"]), before)
    plain = make()
    plain.load_state_dict(merge_lora(model).state_dict())
    torch.testing.assert_close(
        plain.eval()(batch["input_ids"], batch["attention_mask"]), before, rtol=1e-4, atol=1e-5
    )
