"""The loop against its hand-written twin, bit for bit; and what it must not do (sync, forget, average wrongly)."""

import copy
import math
import signal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.batching import Batches, BucketBatchSampler, collate, evaluation_batches
from course_lib.measuring.counters import count_events
from course_lib.measuring.naive import naive_epoch
from course_lib.models.transformers import ModelConfig, TextClassifier, make_model
from course_lib.training.callbacks import Callback, InterruptBetweenSteps, TrainState
from course_lib.training.checkpoint import capture, load_checkpoint, restore, save_checkpoint
from course_lib.training.loop import NonFiniteError, evaluate, fit, train_one_epoch, train_step
from course_lib.training.optim import make_optimizer
from course_lib.training.reproducibility import seed_everything, weights_sha256
from course_lib.training.schedules import schedule_values, warmup_cosine
from course_lib.training.scores import task_loss
from tests.course_lib.scripts.small import NUM_CLASSES, Samples


def setup(max_steps=12, dropout=0.1, learning_rate=1e-2):
    seed_everything(7)
    config = ModelConfig(
        vocab_size=60, num_classes=NUM_CLASSES, max_length=32, d_model=16, num_layers=1, dropout=dropout
    )
    model = TextClassifier(config)
    optimizer = make_optimizer(model, learning_rate=learning_rate)
    scheduler = warmup_cosine(optimizer, warmup_steps=3, max_steps=max_steps)
    return model, optimizer, scheduler


def make_batches(seed=0):
    samples = Samples(70)
    return Batches(samples, BucketBatchSampler(samples.lengths, 16, seed=seed))


def twin(max_steps, max_norm=0.5):
    """Plain torch, written by hand: two parameter groups, clipping, warmup and cosine by formula."""
    seed_everything(7)
    config = ModelConfig(
        vocab_size=60, num_classes=NUM_CLASSES, max_length=32, d_model=16, num_layers=1, dropout=0.1
    )
    model = TextClassifier(config)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-2,
        fused=True,
    )
    samples, losses, step, epoch = Samples(70), [], 0, 0
    sampler = BucketBatchSampler(samples.lengths, 16, seed=0)
    model.train()
    while step < max_steps:
        sampler.set_epoch(epoch)
        for indices in sampler:
            batch = collate([samples[i] for i in indices])
            cosine = 0.5 * (1 + math.cos(math.pi * (step - 3) / (max_steps - 3)))
            factor = (step + 1) / 3 if step < 3 else cosine
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * factor
            loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            losses.append(loss.item())
            step += 1
            if step == max_steps:
                break
        epoch += 1
    return model, losses


def test_fit_equals_the_hand_written_loop_bit_for_bit_and_logs_its_loss_curve():
    expected_model, expected_losses = twin(12)
    model, optimizer, scheduler = setup(12)
    records = fit(
        model,
        make_batches(),
        optimizer,
        scheduler=scheduler,
        validation_batches=evaluation_batches(Samples(20, seed=1), 8),  # evaluation must leave no trace
        max_epochs=9,
        max_steps=12,
        max_norm=0.5,
        log_every_steps=1,
    )
    assert weights_sha256(model) == weights_sha256(expected_model)
    losses = [record["loss"] for record in records if record["kind"] == "train"]
    assert losses == pytest.approx(expected_losses, rel=1e-6)
    assert losses[-1] < 0.8 * losses[0]
    rates = [record["learning_rate"] for record in records if record["kind"] == "train"]
    assert rates == pytest.approx(schedule_values("cosine", 1e-2, 12, warmup_steps=3))


def test_one_epoch_by_the_pieces_equals_one_epoch_by_fit():
    model_a, optimizer_a, scheduler_a = setup()
    record, epoch_record = fit(model_a, make_batches(), optimizer_a, scheduler=scheduler_a, max_norm=0.5)
    model_b, optimizer_b, scheduler_b = setup()
    result = train_one_epoch(model_b, make_batches(), optimizer_b, scheduler_b, 0.5)
    model_c, optimizer_c, scheduler_c = setup()
    model_c.train()
    for batch in make_batches():
        train_step(model_c, batch, optimizer_c, scheduler=scheduler_c, max_norm=0.5)
    assert weights_sha256(model_a) == weights_sha256(model_b) == weights_sha256(model_c)
    assert result["loss"] == record["loss"]
    assert epoch_record["kind"] == "epoch"
    norm = sum(p.detach().double().square().sum() for p in model_a.parameters()).sqrt()
    assert epoch_record["weight_norm"] == pytest.approx(float(norm), rel=1e-5)
    assert (result["num_samples"], result["num_steps"]) == (70, 5)
    lengths = Samples(70).lengths
    assert result["num_tokens"] == lengths.sum()
    order = list(make_batches().order)
    slots = sum(len(chosen) * lengths[chosen].max() for chosen in order)
    assert result["pad_fraction"] == pytest.approx(1 - lengths.sum() / slots)


def test_the_epoch_loss_weighs_samples_and_not_batches():
    model, optimizer, _ = setup(dropout=0.0, learning_rate=1e-12)
    samples = Samples(70)
    uneven = Batches(samples, [list(range(64)), [64], [65, 66, 67, 68, 69]])
    trained = train_one_epoch(model, uneven, optimizer)["loss"]
    whole = evaluate(model, [collate(samples)])["loss"]
    assert trained == pytest.approx(whole, rel=1e-5)
    assert evaluate(model, uneven)["loss"] == pytest.approx(whole, rel=1e-5)
    means = [evaluate(model, [collate([samples[i] for i in chosen])])["loss"] for chosen in uneven.order]
    assert trained != pytest.approx(np.mean(means), rel=1e-3)  # the mistake would have shown


def test_syncs_do_not_grow_with_the_number_of_steps():
    def syncs(num_epochs, **options):
        model, optimizer, scheduler = setup()
        batches = list(make_batches()) * num_epochs
        with count_events(model) as counts:
            fit(model, batches, optimizer, scheduler=scheduler, **options)
        assert counts.num_optimizer_steps == counts.num_forwards == 5 * num_epochs
        return counts.num_syncs

    assert syncs(1) == syncs(4) <= 8
    assert syncs(4, log_every_steps=1) > syncs(4)  # the counter does see them


def test_naive_epoch_learns_the_same_and_syncs_each_step():
    model, optimizer, _ = setup()
    samples = Samples(70)
    with count_events(model) as counts:
        first = naive_epoch(model, samples, optimizer, pad_to=32, micro_batch_size=16)
    assert counts.num_syncs >= counts.num_optimizer_steps == 5
    for epoch in range(1, 6):
        last = naive_epoch(model, samples, optimizer, pad_to=32, micro_batch_size=16, seed=epoch)
    assert last["num_samples"] == 70
    assert last["loss"] < 0.7 * first["loss"]


def test_evaluate_is_exact_restores_every_mode_and_takes_no_gradient():
    model, _, _ = setup(dropout=0.5)
    model.train()
    model.blocks[0].eval()  # a frozen part must stay frozen
    samples = Samples(33, seed=3)
    before = torch.get_rng_state()
    result = evaluate(model, evaluation_batches(samples, 8), return_predictions=True)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training and not model.blocks[0].training and not model.blocks[0].dropout.training
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    with torch.no_grad():
        whole = collate(samples)
        logits = model(whole["input_ids"], whole["attention_mask"])
    assert result["loss"] == pytest.approx(F.cross_entropy(logits, whole["labels"]).item(), rel=1e-5)
    assert result["accuracy"] == pytest.approx((logits.argmax(1) == whole["labels"]).float().mean().item())
    assert result["num_items"] == 33
    assert (result["predictions"] == result["labels"]).double().mean() == pytest.approx(result["accuracy"])


@pytest.mark.parametrize(
    "task", ["classification", "token-classification", "language-modelling", "regression", "multi-label"]
)
@pytest.mark.parametrize("return_predictions", [False, True])
def test_a_judgement_of_any_task_is_one_sync_however_many_batches(task, return_predictions):
    model = make_model(ModelConfig(vocab_size=60, num_classes=3, max_length=32, task=task, d_model=16))
    rng, samples = np.random.default_rng(0), []
    for _ in range(33):
        ids = rng.integers(3, 60, rng.integers(2, 20))
        labels = {
            "token-classification": ids % 3,
            "language-modelling": ids,
            "regression": float(ids[0]),
            "multi-label": (rng.random(3) < 0.5).astype(np.float32),
        }
        samples.append((ids, labels.get(task, int(ids[0]) % 3)))
    made = [collate(samples[start : start + 7]) for start in range(0, 33, 7)]
    loss = task_loss(model)
    with count_events(model) as counts:
        evaluate(model, made, loss=loss, return_predictions=return_predictions)
    assert (counts.num_forwards, counts.num_syncs) == (5, 1)


def test_a_judgement_by_a_loss_of_ones_own_is_one_sync():
    model = nn.Linear(3, 1)
    with count_events(model) as counts:
        evaluate(model, [torch.ones(2, 3)] * 5, loss=lambda model, batch: (model(batch).sum(), len(batch)))
    assert (counts.num_forwards, counts.num_syncs) == (5, 1)


def test_a_nan_is_named_with_its_step_and_nothing_is_saved_after_it():
    safe_steps = []

    class Poison(Callback):
        def on_step(self, state):
            if state.step == 7:
                model.head.bias.data.fill_(math.nan)

        def on_safe_point(self, state):
            safe_steps.append(state.step)

    model, optimizer, _ = setup()
    with pytest.raises(NonFiniteError, match=r"step 8 \(batch 3 of the epoch\): loss is nan.*learning_rate"):
        fit(model, make_batches(), optimizer, max_epochs=4, log_every_steps=10, callbacks=[Poison()])
    assert safe_steps == [5]


@pytest.mark.parametrize("stop_at", [3, 5, 8])
def test_a_run_cut_anywhere_and_resumed_from_disk_ends_with_the_same_weights(tmp_path, stop_at):
    class Save(Callback):
        def on_safe_point(self, state):
            if state.step == stop_at:
                path = tmp_path / "last.pt"
                save_checkpoint(
                    path,
                    capture(
                        model=model,
                        optimizer=optimizer,
                        scheduler=scheduler,
                        sampler=batches.order,
                        state=state,
                        config={},
                        data_fingerprint="",
                    ),
                )

    options = {"max_epochs": 3, "max_norm": 0.5, "log_every_steps": 1}
    model, optimizer, scheduler = setup(15)
    batches = make_batches()
    whole = fit(model, batches, optimizer, scheduler=scheduler, callbacks=[Save()], **options)
    expected = weights_sha256(model)

    seed_everything(99)  # nothing of the first run may be left but the file
    model, optimizer, scheduler = setup(15)
    batches = make_batches()
    state = restore(
        load_checkpoint(tmp_path / "last.pt"),
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        sampler=batches.order,
    )
    rest = fit(model, batches, optimizer, scheduler=scheduler, state=state, **options)
    assert weights_sha256(model) == expected
    losses, expected_losses = (
        [r["loss"] for r in records if r["kind"] == "train"] for records in (rest, whole)
    )
    assert losses == expected_losses[-len(losses) :]
    assert (rest[0]["step"], rest[-1]["step"]) == (stop_at + 1, 15)


def test_a_callback_can_stop_and_the_run_can_go_on():
    class Stop(Callback):
        def on_step(self, state):
            state.should_stop = state.step == 7

    model, optimizer, scheduler = setup()
    state = TrainState()
    batches = make_batches()
    fit(model, batches, optimizer, scheduler=scheduler, max_epochs=3, callbacks=[Stop()], state=state)
    assert (state.step, state.epoch, state.step_in_epoch) == (7, 1, 2)


@pytest.mark.parametrize("moment", ["on_record", "on_safe_point"])
def test_a_callback_that_stops_at_a_record_ends_the_run_at_that_step(moment):
    class Stop(Callback):
        pass

    setattr(Stop, moment, lambda self, state, *_: setattr(state, "should_stop", state.step == 4))
    model, optimizer, scheduler = setup()
    state = TrainState()
    options = {"max_epochs": 3, "log_every_steps": 2, "callbacks": [Stop()], "state": state}
    records = fit(model, make_batches(), optimizer, scheduler=scheduler, **options)
    assert state.step == records[-1]["step"] == 4


def test_an_empty_epoch_is_an_error_that_says_why():
    model, optimizer, _ = setup()
    for call in (
        lambda: fit(model, [], optimizer),
        lambda: fit(model, iter(make_batches()), optimizer, max_epochs=2),
        lambda: train_one_epoch(model, [], optimizer),
        lambda: evaluate(model, []),
    ):
        with pytest.raises(ValueError, match="already used up"):
            call()


class TokenSamples(Samples):
    """A label for each token; some tokens have none."""

    def __init__(self, num_samples=40, seed=0):
        super().__init__(num_samples, seed)
        rng = np.random.default_rng(seed)
        for i, (ids, _) in enumerate(self):
            self[i] = (ids, np.where(rng.random(len(ids)) < 0.4, -100, ids % NUM_CLASSES))


@pytest.mark.parametrize("task", ["classification", "token-classification", "language-modelling"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_accumulated_gradients_are_those_of_the_big_batch_whatever_the_sizes(task, label_smoothing):
    """Uneven micro-batches and, for tokens, uneven numbers of items: 40 samples as 17 + 16 + 7."""
    samples = Samples(40) if task == "classification" else TokenSamples(40)
    order = [list(range(17)), list(range(17, 33)), list(range(33, 40))]
    micro_batches = [collate([samples[i] for i in chosen]) for chosen in order]
    config = ModelConfig(
        vocab_size=60,
        num_classes=NUM_CLASSES,
        max_length=32,
        d_model=16,
        num_layers=1,
        dropout=0.0,
        task=task,
    )
    seed_everything(3)
    model = make_model(config).double()
    other = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    metrics = train_step(model, micro_batches, optimizer, max_norm=math.inf, label_smoothing=label_smoothing)
    # The twin: one batch, torch's own mean over what is not -100.
    batch = collate([samples[i] for i in range(40)])
    logits = other(batch["input_ids"], batch["attention_mask"])
    loss = F.cross_entropy(
        logits.flatten(0, -2).float(), batch["labels"].flatten(), label_smoothing=label_smoothing
    )
    loss.backward()
    assert metrics["loss"].item() == pytest.approx(loss.item(), rel=1e-6)
    assert metrics["num_items"] == (batch["labels"] != -100).sum()
    for (name, parameter), twin_parameter in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, twin_parameter.grad, rtol=1e-5, atol=1e-7, msg=name)


def test_each_epoch_of_torchs_own_loader_has_an_order_of_its_own():
    """A sampler is told of the epoch wherever torch puts it; a DataLoader does not pass it on."""
    samples = Samples(70)
    sampler = BucketBatchSampler([len(ids) for ids, _ in samples], 16)
    loader = torch.utils.data.DataLoader(samples, batch_sampler=sampler, collate_fn=collate)
    spread = torch.utils.data.DistributedSampler(samples, num_replicas=1, rank=0)
    for batches in (loader, torch.utils.data.DataLoader(samples, 16, sampler=spread, collate_fn=collate)):
        model, optimizer, _ = setup()
        seen = [[]]
        model.register_forward_pre_hook(lambda _, args, seen=seen: seen[-1].append(args[0][:, :4].tolist()))

        class NextEpoch(Callback):
            def on_record(self, state, record, seen=seen):
                if record["kind"] == "epoch":
                    seen.append([])

        fit(model, batches, optimizer, max_epochs=2, callbacks=[NextEpoch()])
        first, second, _ = seen
        assert len(first) == len(second) == 5 and first != second


def test_the_last_window_of_an_epoch_may_have_fewer_micro_batches():
    """70 samples in batches of 16 make 5; two a time make windows of 2, 2 and 1, each one update."""
    model, optimizer, scheduler = setup(6, dropout=0.0)
    twin_model, twin_optimizer, twin_scheduler = setup(6, dropout=0.0)
    state = TrainState()
    fit(model, make_batches(), optimizer, scheduler=scheduler, max_epochs=2, grad_accum_steps=2, state=state)
    assert (state.step, state.epoch) == (6, 2)
    batches = make_batches()
    for epoch in range(2):
        batches.set_epoch(epoch)
        made = list(batches)
        for window in (made[:2], made[2:4], made[4:]):
            train_step(twin_model, window, twin_optimizer, scheduler=twin_scheduler)
    assert weights_sha256(model) == weights_sha256(twin_model)


def test_validation_keeps_its_cadence():
    model, optimizer, scheduler = setup()
    validation = evaluation_batches(Samples(20, seed=1), 8)
    options = {"max_epochs": 2, "validate_every_steps": 3, "validation_batches": validation}
    records = fit(model, make_batches(), optimizer, scheduler=scheduler, **options)
    assert [r["step"] for r in records if r["kind"] == "validation"] == [3, 5, 6, 9, 10]
    assert [r["step"] for r in records if r["kind"] == "epoch"] == [5, 10]
    assert {"weight_norm", "num_nonfinite", "memory_bytes", "peak_memory_bytes"} <= records[-1].keys()
    train = [r for r in records if r["kind"] == "train"]
    assert {"loss", "learning_rate", "grad_norm", "step_time", "data_wait_fraction", "tokens_per_sec",
            "pad_fraction"} <= train[0].keys()  # fmt: skip
    assert sum(r["num_samples"] for r in train) == 140


def test_ctrl_c_ends_the_run_between_steps_and_a_second_one_at_once():
    class CtrlC(Callback):
        def on_step(self, state):
            if state.step == 3:
                signal.raise_signal(signal.SIGINT)
                self.outlived = True

    model, optimizer, scheduler = setup()
    state, press = TrainState(), CtrlC()
    with pytest.raises(KeyboardInterrupt), InterruptBetweenSteps() as interrupt:
        fit(
            model,
            make_batches(),
            optimizer,
            scheduler=scheduler,
            max_steps=12,
            state=state,
            callbacks=[press, interrupt],
        )
    assert press.outlived and state.step == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt), InterruptBetweenSteps():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second one is not put off")


def test_callbacks_hear_of_the_end_whatever_ends_the_run():
    class Ends(Callback):
        ended = 0

        def on_record(self, state, record):
            if record["step"] == 4:
                raise KeyboardInterrupt

        def on_end(self, state):
            self.ended += 1

    model, optimizer, _ = setup()
    finished, interrupted = Ends(), Ends()
    fit(model, make_batches(), optimizer, max_steps=2, callbacks=[finished])
    with pytest.raises(KeyboardInterrupt):
        fit(model, make_batches(), optimizer, log_every_steps=4, callbacks=[interrupted])
    assert (finished.ended, interrupted.ended) == (1, 1)
