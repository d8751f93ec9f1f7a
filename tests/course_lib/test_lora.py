"""LoRA against the formula written out, and what it must leave alone."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.models.lora import LoRALinear, add_lora, merge_lora
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.training.loop import train_step


def make(task="classification", **changes):
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "num_classes": 3, "max_length": 16, "d_model": 16, "num_layers": 2}
    return make_model(ModelConfig(task=task, dropout=0.0, **{**sizes, **changes}))


def make_batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(10) < torch.tensor([10, 7, 4, 2])[:, None]
    ids = torch.randint(3, 60, (4, 10), generator=generator) * mask
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([0, 1, 2, 1])}


def train(model, num_steps=4):
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1e-2)
    for seed in range(num_steps):
        train_step(model, make_batch(seed), optimizer)


def logits_of(model):
    batch = make_batch(99)
    return model.eval()(batch["input_ids"], batch["attention_mask"])


def test_the_model_starts_as_its_base_and_only_adapters_and_head_learn():
    base, model = make(), add_lora(make(), rank=2)
    assert torch.equal(logits_of(model), logits_of(base))
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    adapted = ("query_key_value", "attention_out", "feed_forward_in", "feed_forward_out")
    assert names == {"head.weight", "head.bias"} | {
        f"blocks.{k}.{layer}.lora_{x}" for k in (0, 1) for layer in adapted for x in "ab"
    }
    frozen = {name: p.clone() for name, p in model.state_dict().items() if name not in names}
    train(model)
    state = model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in frozen.items())
    assert not torch.equal(logits_of(model), logits_of(base))
    # The base's weights are found again under their own names, but for `.base`.
    assert all(
        torch.equal(frozen[name], tensor) for name, tensor in base.state_dict().items() if name in frozen
    )
    assert {name.replace(".base.", ".") for name in frozen} | {"head.weight", "head.bias"} == set(
        base.state_dict()
    )


def test_twin_written_by_hand():
    torch.manual_seed(3)
    base = torch.nn.Linear(6, 5)
    weight, bias = base.weight.detach().clone(), base.bias.detach().clone()
    layer = LoRALinear(base, rank=2, alpha=8.0)
    a, b = layer.lora_a.detach().clone().requires_grad_(), torch.zeros(5, 2, requires_grad=True)
    ours = torch.optim.SGD([layer.lora_a, layer.lora_b], lr=0.1)
    hand = torch.optim.SGD([a, b], lr=0.1)
    for seed in range(5):
        x, y = torch.randn(7, 6, generator=torch.Generator().manual_seed(seed)), torch.ones(7, 5)
        for optimizer, out in ((ours, layer(x)), (hand, x @ weight.T + bias + 4.0 * ((x @ a.T) @ b.T))):
            optimizer.zero_grad()
            F.mse_loss(out, y).backward()
            optimizer.step()
    torch.testing.assert_close(layer.lora_a, a, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(layer.lora_b, b, rtol=1e-6, atol=1e-7)
    assert torch.equal(base.weight, weight)


@pytest.mark.parametrize("task", ["classification", "token-classification", "language-modelling"])
def test_merged_it_is_a_plain_model_with_equal_outputs(task):
    model = add_lora(make(task), rank=3, alpha=6.0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_b" in name:
                parameter.normal_()
    before = logits_of(model)
    plain = make(task)
    plain.load_state_dict(merge_lora(model).state_dict())
    torch.testing.assert_close(logits_of(plain), before, rtol=1e-4, atol=1e-5)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_state_goes_into_another_adapted_model():
    model = add_lora(make(), rank=2)
    train(model)
    other = add_lora(make(d_model=16), rank=2)
    other.load_state_dict(model.state_dict())
    assert torch.equal(logits_of(other), logits_of(model))
