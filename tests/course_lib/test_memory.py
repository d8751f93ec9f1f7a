"""Activation checkpointing keeps every bit and fewer bytes; compiling keeps names, weights and random numbers."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from course_lib.measuring.counters import count_events
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.training.loop import train_step
from course_lib.training.losses import loss_sum
from course_lib.training.memory import apply_activation_checkpointing, compile_model

TASKS = ["classification", "token-classification", "language-modelling"]


def make(task="classification", **changes):
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "num_classes": 3, "max_length": 32, "d_model": 32, "num_layers": 3}
    return make_model(ModelConfig(task=task, **{"dropout": 0.2, **sizes, **changes}))


def make_batch(task="classification", width=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(width) < torch.tensor([width, width - 3, 4, 2])[:, None]
    ids = torch.randint(3, 60, (4, width), generator=generator) * mask
    labels = torch.tensor([0, 1, 2, 1]) if task == "classification" else (ids % 3).where(mask, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def saved_bytes(model, batch):
    """What autograd keeps between forward and backward, parameters not counted; and the loss."""
    with count_events(model) as counts:
        loss = loss_sum(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    return counts.peak_saved_bytes, loss


@pytest.mark.parametrize("task", TASKS)
def test_checkpointed_gradients_are_the_same_to_the_bit_with_dropout_on(task):
    twin, model, batch = make(task), apply_activation_checkpointing(make(task)), make_batch(task)
    assert list(model.state_dict()) == list(twin.state_dict())
    sizes = []
    for one in (twin, model):
        torch.manual_seed(5)
        size, loss = saved_bytes(one, batch)
        loss.backward()
        sizes.append((size, loss.detach(), torch.rand(3)))
    (twin_bytes, twin_loss, twin_random), (model_bytes, model_loss, model_random) = sizes
    assert model_bytes < 0.5 * twin_bytes
    assert torch.equal(model_loss, twin_loss) and torch.equal(model_random, twin_random)
    for parameter, twin_parameter in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(parameter.grad, twin_parameter.grad)


def test_checkpointed_training_ends_with_equal_weights_and_evaluation_is_untouched():
    ended = []
    for change in (lambda model: model, apply_activation_checkpointing):
        model = change(make())
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(1)
        for seed in range(6):
            train_step(model, make_batch(seed=seed), optimizer)
        batch = make_batch(seed=9)
        with torch.inference_mode():
            ended.append((model.state_dict(), model.eval()(batch["input_ids"], batch["attention_mask"])))
    (twin, twin_logits), (weights, logits) = ended
    assert all(torch.equal(weights[name], twin[name]) for name in twin)
    assert torch.equal(logits, twin_logits)


@pytest.mark.slow
def test_compiled_once_it_trains_to_the_twins_weights_at_any_batch_size_and_width():
    twin, model = (make(d_model=16, num_layers=1, dropout=0.0) for _ in range(2))
    random_before = torch.get_rng_state()
    model, report = compile_model(model, make_batch(), blocks=1, min_seconds=0.01)
    assert report["is_compiled"], report["reason"]
    assert report["compile_seconds"] > 0 and report["speedup"]["estimate"] > 0
    assert torch.equal(torch.get_rng_state(), random_before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert list(model.state_dict()) == list(twin.state_dict())  # no _orig_mod.
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), twin.parameters(), strict=True))
    ours, plain = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, twin))
    with torch._dynamo.config.patch(error_on_recompile=True):
        for seed, (rows, width) in enumerate([(4, 24), (3, 17), (2, 30), (4, 12)]):
            batch = {name: value[:rows] for name, value in make_batch(width=width, seed=seed).items()}
            train_step(model, batch, ours)
            plain.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                twin(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
            plain.step()
    for parameter, expected in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.exhaustive
def test_without_a_compiler_the_model_stays_and_the_reason_is_told(tmp_path):
    program = """
        import torch
        from course_lib.training.memory import compile_model
        from tests.course_lib.test_memory import make, make_batch
        model, report = compile_model(make(), make_batch())
        print(report)
        batch = make_batch()
        assert not report["is_compiled"]
        assert torch.equal(model.eval()(batch["input_ids"], batch["attention_mask"]),
                           make().eval()(batch["input_ids"], batch["attention_mask"]))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={
            **os.environ,
            "CXX": "/nowhere/g++",
            "PATH": "/nowhere",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert "C++ compiler" in result.stdout and "compile=off" in result.stdout
    assert "\n" not in result.stdout.strip()
