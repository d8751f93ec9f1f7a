"""Several labels and numbers: losses against torch's own, scores against scikit-learn's, whatever the batches."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib import fit, make_optimizer
from course_lib.data import collate
from course_lib.models import ModelConfig, TargetScale, make_model, set_target_scale
from course_lib.training import evaluate, evaluation_summary, task_loss

SIZES = {"vocab_size": 50, "max_length": 12, "d_model": 8, "num_layers": 1, "num_heads": 2, "dropout": 0.0}


def make(task, num_classes=5):
    torch.manual_seed(0)
    return make_model(ModelConfig(task=task, num_classes=num_classes, **SIZES))


def batches(task, num=40, sizes=(7, 16, 3, 14), seed=0):
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(num):
        ids = rng.integers(1, 50, rng.integers(2, 12))
        label = (
            (rng.random(5) < 0.4).astype(np.float32) if task == "multi-label" else float(rng.normal(1e4, 50))
        )
        samples.append((ids, label))
    ends = np.cumsum(sizes)
    assert ends[-1] == num
    return [collate(samples[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def outputs(model, made):
    with torch.no_grad():
        parts = [(model(b["input_ids"], b["attention_mask"]), b["labels"]) for b in made]
    return (torch.cat(column) for column in zip(*parts, strict=True))


def test_the_loss_of_several_labels_is_torchs_and_weighs_texts_alike():
    model, made = make("multi-label"), batches("multi-label")
    logits, labels = outputs(model, made)
    found = evaluate(model, made, loss=task_loss(model))
    assert found["loss"] == pytest.approx(F.binary_cross_entropy_with_logits(logits, labels).item(), rel=1e-6)
    assert found["num_items"] == 40


def test_scores_of_several_labels_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    model, made = make("multi-label"), batches("multi-label")
    found = evaluate(model, made, loss=task_loss(model), return_predictions=True)
    labels, predictions = found["labels"].numpy() == 1, found["predictions"].numpy()
    assert predictions.any() and not predictions.all() and labels.any(axis=0).all()
    for average in ("macro", "micro"):
        f1 = metrics.f1_score(labels, predictions, average=average, zero_division=0)
        assert found[f"{average}_f1"] == pytest.approx(f1)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predictions))
    whole = evaluate(model, batches("multi-label", sizes=(40,)), loss=task_loss(model))
    assert {name: found[name] for name in whole} == pytest.approx(whole, rel=1e-5)
    summary = evaluation_summary("multi-label", labels, predictions, found["lengths"].numpy(), list("abcde"))
    report = metrics.classification_report(labels, predictions, output_dict=True, zero_division=0)
    for i, row in enumerate(summary["per_class"]):
        theirs = report[str(i)]
        assert [row["precision"], row["recall"], row["f1"]] == pytest.approx(
            [theirs["precision"], theirs["recall"], theirs["f1-score"]]
        )
    assert sum(row["num_samples"] for row in summary["slices"]["length"]) == 40


def test_the_loss_of_numbers_is_squared_error_in_the_variance_of_the_targets():
    model, made = make("regression"), batches("regression")
    set_target_scale(model, 1e4, 50.0)
    numbers, labels = outputs(model, made)
    found = evaluate(model, made, loss=task_loss(model))
    assert numbers.shape == labels.shape == (40,)
    assert found["loss"] == pytest.approx(F.mse_loss(numbers, labels).item() / 50**2, rel=1e-5)


def test_scores_of_numbers_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    model, made = make("regression"), batches("regression")
    set_target_scale(model, 1e4, 50.0)
    found = evaluate(model, made, loss=task_loss(model), return_predictions=True)
    labels, predictions = found["labels"].double().numpy(), found["predictions"].double().numpy()
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(labels, predictions), rel=1e-4)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(labels, predictions), rel=1e-4)
    assert found["r2"] == pytest.approx(metrics.r2_score(labels, predictions), abs=1e-3)
    rows = evaluation_summary("regression", labels, predictions, found["lengths"].numpy(), ())["slices"][
        "length"
    ]
    total = sum(row["num_samples"] * row["mae"] for row in rows)
    assert total / 40 == pytest.approx(found["mae"], rel=1e-4)


def test_targets_that_are_all_equal_leave_nothing_to_explain():
    model = make("regression")
    made = batches("regression")
    for batch in made:
        batch["labels"].fill_(3.0)
    assert evaluate(model, made, loss=task_loss(model))["r2"] == 0.0


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_what_only_fills_a_micro_batch_weighs_nothing(task):
    model, made = make(task), batches(task)
    plain = evaluate(model, made, loss=task_loss(model))
    filler = {name: part.clone() for name, part in made[0].items()}
    filler["labels"].fill_(math.nan)
    assert evaluate(model, [*made, filler], loss=task_loss(model)) == pytest.approx(plain)
    loss = task_loss(model)
    cost, items = loss(model, filler)
    cost.backward()
    assert items == 0 and cost == 0
    assert all(p.grad is None or (p.grad == 0).all() for p in model.parameters())


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_fit_ends_where_a_loop_by_hand_ends(task):
    made = batches(task)
    by_hand, ours = make(task), make(task)
    for model in (by_hand, ours):
        set_target_scale(model, 1e4, 50.0)
    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.1)
    for batch in made:
        output = by_hand(batch["input_ids"], batch["attention_mask"])
        if task == "multi-label":
            cost = F.binary_cross_entropy_with_logits(output, batch["labels"])
        else:
            cost = (((output - batch["labels"]) / 50.0) ** 2).mean()
        optimizer.zero_grad()
        cost.backward()
        nn.utils.clip_grad_norm_(by_hand.parameters(), 1.0)
        optimizer.step()
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    fit(ours, made, optimizer, loss=task_loss(ours), max_norm=1.0)
    for one, other in zip(by_hand.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_the_unit_of_the_targets_does_not_matter_to_what_is_learned():
    ended = []
    for unit in (1.0, 1024.0):
        model, made = make("regression"), batches("regression")
        for batch in made:
            batch["labels"] *= unit
        set_target_scale(model, 1e4 * unit, 50.0 * unit)
        fit(model, made, make_optimizer(model, learning_rate=1e-2), loss=task_loss(model), max_epochs=3)
        ended.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*ended)


def test_the_scale_is_saved_with_the_weights_and_is_not_learned():
    model, other = make("regression"), make("regression")
    set_target_scale(model, 7.0, 3.0)
    assert not any(
        "scale" in name or name.endswith((".mean", ".std")) for name, _ in model.named_parameters()
    )
    other.load_state_dict(model.state_dict())
    assert (task_loss(other).mean, task_loss(other).std) == (7.0, 3.0)
    half = TargetScale()
    half.mean.fill_(1000.25)
    assert half(torch.zeros(2, 1, dtype=torch.bfloat16)).tolist() == [1000.25] * 2, "not rounded to 16 bits"


def test_classes_keep_the_default_loss():
    assert task_loss(make("classification")) is None
    assert task_loss(SimpleNamespace()) is None
