"""Any model, any batch, any loss: gradients are those of one big batch by hand, and what does not fit is named."""

import copy
import math
from collections import namedtuple
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_lib.base.errors import UserError
from course_lib.distributed.ranks import Ranks
from course_lib.measuring.counters import count_events
from course_lib.training.callbacks import TrainState
from course_lib.training.checkpoint import Checkpointer, capture, load_checkpoint, restore
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit, train_one_epoch, train_step
from course_lib.training.micro_batch import largest_micro_batch_size
from course_lib.training.precision import Precision
from course_lib.training.reproducibility import weights_sha256
from course_lib.training.window import MicroBatches
from tests.course_lib.scripts import two_losses
from tests.course_lib.scripts.small import SCRIPTS, torchrun
from tests.later import Later

transformers = Later("transformers")
SIZES = {"even": [8, 8, 8], "uneven": [11, 2, 7], "one": [24]}


def make_model(outputs=3, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, outputs))


def numbers(num_rows=24, outputs=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_rows, 5, generator=generator)
    return x, torch.randint(outputs, (num_rows,), generator=generator)


def squared_error(model, batch):
    x, y = batch
    return F.mse_loss(model(x), y, reduction="sum"), len(x)


def masked_error(model, batch):
    """Items are counted by a tensor, and there are fewer of them than rows."""
    x, y = batch
    kept = y[:, 0] > 0
    return ((model(x) - y).square().sum(dim=1) * kept).sum(), kept.sum()


def sgd(model, learning_rate=0.5):
    return torch.optim.SGD(model.parameters(), lr=learning_rate)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("loss", [squared_error, masked_error])
def test_own_losses_accumulate_to_the_gradients_of_the_big_batch(loss, kind):
    model = make_model().double()
    twin = copy.deepcopy(model)
    x, y = torch.randn(24, 5).double(), torch.randn(24, 3).double()
    parts = list(
        zip(x[: sum(SIZES[kind])].split(SIZES[kind]), y[: sum(SIZES[kind])].split(SIZES[kind]), strict=True)
    )
    metrics = train_step(model, parts, sgd(model), loss=loss, max_norm=math.inf)
    total, count = loss(twin, (x[: sum(SIZES[kind])], y[: sum(SIZES[kind])]))
    (total / count).backward()
    assert metrics["num_items"] == count
    torch.testing.assert_close(metrics["loss"], total.detach() / count, rtol=1e-12, atol=0)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)
    norm = torch.stack([p.grad.norm() for p in twin.parameters()]).norm()
    torch.testing.assert_close(metrics["grad_norm"], norm, rtol=1e-10, atol=0)


def test_one_batch_by_an_own_loss_is_plain_torch_bit_for_bit():
    model, twin = make_model(), make_model()
    x, y = torch.randn(24, 5), torch.randn(24, 3)
    optimizer, twins = sgd(model), sgd(twin)
    loss = lambda model, batch: (F.mse_loss(model(batch[0]), batch[1], reduction="sum"), batch[1].numel())  # noqa: E731
    for _ in range(3):
        train_step(model, (x, y), optimizer, loss=loss)
        twins.zero_grad()
        F.mse_loss(twin(x), y).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        twins.step()
    assert weights_sha256(model) == weights_sha256(twin)


def test_the_default_loss_written_out_gives_the_same_bits():
    def written_out(model, batch):
        x, y = batch
        return F.cross_entropy(model(x), y, reduction="sum"), len(y)

    x, y = numbers()
    ends = []
    for loss in (None, written_out):
        model = make_model()
        loader = DataLoader(TensorDataset(x, y), 4)
        fit(model, loader, sgd(model), loss=loss, max_epochs=2, grad_accum_steps=2)
        ends.append(weights_sha256(model))
    assert ends[0] == ends[1]


def test_a_module_and_a_loader_train_and_are_judged_as_in_plain_torch():
    x, y = numbers()
    model, twin = make_model(), make_model()
    loader = DataLoader(TensorDataset(x, y), 7, shuffle=True)
    torch.manual_seed(5)
    records = fit(model, loader, sgd(model), validation_batches=loader, max_epochs=2, max_norm=0.1)
    torch.manual_seed(5)
    optimizer = sgd(twin)
    for _ in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(twin(inputs), labels).backward()
            nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
            optimizer.step()
        for _ in loader:  # the validation draws an order, too
            pass
    assert weights_sha256(model) == weights_sha256(twin)
    train, validation, _ = records[-3:]
    assert (train["num_samples"], validation["num_items"]) == (24, 24)
    assert not {"num_tokens", "tokens_per_sec", "pad_fraction"} & train.keys()
    with torch.no_grad():
        logits = model(x)
    assert validation["loss"] == pytest.approx(F.cross_entropy(logits, y).item(), rel=1e-5)
    assert validation["accuracy"] == pytest.approx((logits.argmax(1) == y).float().mean().item())
    found = evaluate(model, [(x, y)], return_predictions=True)
    assert torch.equal(found["predictions"], logits.argmax(1)) and "lengths" not in found


Pair = namedtuple("Pair", "x y")
BATCHES = {
    "list": list,
    "tuple": tuple,
    "named tuple": lambda pair: Pair(*pair),
    "labels": lambda pair: {"image": pair[0], "labels": pair[1]},
    "y first": lambda pair: {"y": pair[1], "x": pair[0]},
    "small integers": lambda pair: (pair[0], pair[1].to(torch.uint8)),
}
OUTPUTS = {
    "a tensor": lambda logits: logits,
    "a dict": lambda logits: {"hidden": logits[:, :1], "logits": logits},
    "a tuple": lambda logits: (logits, logits[:, :1]),
    "an object": lambda logits: SimpleNamespace(logits=logits),
}


class Says(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.inner, self.form = make_model(), form

    def forward(self, x):
        return self.form(self.inner(x))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_default_loss_takes_these_batches_from_these_models(batch, output):
    pair = numbers()
    model, twin = Says(OUTPUTS[output]), make_model()
    metrics = train_step(model, BATCHES[batch](pair), sgd(model), max_norm=math.inf)
    F.cross_entropy(twin(pair[0]), pair[1]).backward()
    assert metrics["num_items"] == 24
    for ours, theirs in zip(model.inner.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


def test_labels_of_minus_100_are_no_items():
    x, y = numbers()
    y[::2] = -100
    model = make_model()
    assert train_step(model, (x, y), sgd(model))["num_items"] == 12
    assert evaluate(model, [(x, y)])["num_items"] == 12


X, Y = numbers()
UNFIT = {
    "real labels": ((X, Y.float()), "logits float32 [24, 3] and labels float32 [24]"),
    "labels of another shape": ((X, Y[:, None]), "labels int64 [24, 1]"),
    "three tensors": ((X, X, Y), "a tuple of 3"),
    "two inputs": ({"a": X, "b": X, "labels": Y}, "a dict of a, b, labels"),
    "no labels": ({"x": X}, "a dict of x"),
    "labels of another name": ({"x": X, "class": Y}, "a dict of x, class"),
    "a tensor": (X, "a Tensor"),
    "labels that are no tensor": ((X, [1, 2]), "a tuple of 2"),
}


@pytest.mark.parametrize("batch, found", UNFIT.values(), ids=UNFIT)
def test_a_batch_that_the_default_loss_does_not_know_is_named_with_the_way_out(batch, found):
    model = make_model()
    for call in (lambda: train_step(model, batch, sgd(model)), lambda: evaluate(model, [batch])):
        with pytest.raises(UserError) as error:
            call()
        assert "loss=" in str(error.value) and found in str(error.value)


def test_a_model_without_logits_or_with_one_class_is_named():
    model = Says(lambda logits: SimpleNamespace(scores=logits))
    with pytest.raises(UserError, match=r"no logits in the model's output, a SimpleNamespace: give loss="):
        train_step(model, (X, Y), sgd(model))
    model = make_model(outputs=1)
    with pytest.raises(UserError, match=r"logits float32 \[24, 1\] and labels int64 \[24\]: give loss="):
        train_step(model, (X, torch.zeros_like(Y)), sgd(model))


@pytest.mark.parametrize(
    "says, shown",
    [
        (lambda model, batch: model(batch[0]).sum(), r"a tensor \[\]"),
        (lambda model, batch: (model(batch[0]).sum(dim=1), 24), "a tuple"),
        (lambda model, batch: (1.0, 24), "a tuple"),
        (lambda model, batch: None, "a NoneType"),
    ],
)
def test_a_loss_that_returns_no_sum_and_number_is_told_what_it_should(says, shown):
    model = make_model()
    with pytest.raises(
        UserError, match=rf"sum over items as a 0-d tensor, number of items\), and returned {shown}"
    ):
        train_step(model, (X, Y), sgd(model), loss=says)


def test_what_goes_with_the_default_loss_alone_is_refused_with_another():
    model = make_model()
    with pytest.raises(UserError, match="label_smoothing"):
        train_step(model, (X, X), sgd(model), loss=squared_error, label_smoothing=0.1)
    with pytest.raises(UserError, match="return_predictions"):
        evaluate(model, [(X, X)], loss=squared_error, return_predictions=True)


def test_an_own_loss_is_judged_over_items():
    model = make_model()
    x, y = torch.randn(24, 5), torch.randn(24, 3)
    model[1].register_forward_pre_hook(lambda module, _: seen.append(module.training))
    seen = []
    parts = list(zip(x.split([11, 2, 11]), y.split([11, 2, 11]), strict=True))
    found = evaluate(model, parts, loss=squared_error)
    assert set(found) == {"loss", "num_items"} and found["num_items"] == 24 and seen == [False] * 3
    with torch.no_grad():
        assert found["loss"] == pytest.approx((squared_error(model, (x, y))[0] / 24).item(), rel=1e-6)
    records = fit(model, parts, sgd(model, 0.01), loss=squared_error, validation_batches=parts)
    assert [r["kind"] for r in records] == ["train", "validation", "epoch"]
    assert records[0]["num_samples"] == 24
    assert train_one_epoch(model, parts, sgd(model, 0.01), loss=squared_error)["num_samples"] == 24
    with pytest.raises(ValueError, match="already used up"):
        evaluate(model, [], loss=squared_error)
    with pytest.raises(UserError, match="counts no item"):
        evaluate(model, parts, loss=lambda model, batch: (model(batch[0]).sum(), 0))


def test_items_may_be_weights_and_an_update_may_have_none():
    model, twin = make_model(), make_model()
    weigh = lambda model, batch: (0.01 * squared_error(model, batch)[0], 0.01 * len(batch[0]))  # noqa: E731
    batch = torch.randn(8, 5), torch.randn(8, 3)
    ours = train_step(model, batch, sgd(model), loss=weigh, max_norm=math.inf)
    theirs = train_step(twin, batch, sgd(twin), loss=squared_error, max_norm=math.inf)
    torch.testing.assert_close(ours["grad_norm"], theirs["grad_norm"])
    before = weights_sha256(model)
    none = train_step(model, [batch, batch], sgd(model), loss=lambda m, b: (0 * m(b[0]).sum(), 0))
    assert (none["num_items"], none["loss"]) == (0, 0) and weights_sha256(model) == before


def test_the_first_micro_batch_may_be_without_items():
    model, twin = make_model().double(), make_model().double()
    x, y = torch.randn(24, 5).double(), torch.randn(24, 3).double()
    y[:10, 0] = -1.0
    parts = list(zip(x.split([10, 14]), y.split([10, 14]), strict=True))
    train_step(model, parts, sgd(model), loss=masked_error, max_norm=math.inf)
    total, count = masked_error(twin, (x, y))
    (total / count).backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)


def test_the_weights_of_a_loss_that_learns_are_put_right_with_the_models():
    model = make_model().double()
    scale = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.0)
    loss = lambda model, batch: (scale * squared_error(model, batch)[0], len(batch[0]))  # noqa: E731
    x, y = torch.randn(20, 5).double(), torch.randn(20, 3).double()
    train_step(model, list(zip(x.split([11, 9]), y.split([11, 9]), strict=True)), optimizer, loss=loss)
    expected = squared_error(model, (x, y))[0] / 20
    torch.testing.assert_close(scale.grad, expected.detach(), rtol=1e-10, atol=0)


@pytest.mark.parametrize("name", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_takes_an_own_loss(name):
    """The scaler's factor goes out again, and the sum over many rows does not overflow 16 bits."""
    dtype = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}[name]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12) if name == "16-mixed" else None
    precision = Precision(name, "asked for", dtype, "cpu", scaler)
    model, twin = make_model(), make_model()
    x, y = torch.randn(24, 5), torch.randn(24, 3)
    parts = list(zip(x.split([11, 13]), y.split([11, 13]), strict=True))
    ours = train_step(model, parts, sgd(model), loss=squared_error, precision=precision, max_norm=math.inf)
    theirs = train_step(twin, parts, sgd(twin), loss=squared_error, max_norm=math.inf)
    for key in ("loss", "grad_norm"):
        torch.testing.assert_close(ours[key], theirs[key], rtol=0.03, atol=0)
    assert evaluate(model, parts, loss=squared_error, precision=precision)["loss"] < theirs["loss"]


def test_an_own_loss_adds_no_sync_to_a_step():
    def syncs(num_epochs):
        model = make_model()
        parts = list(zip(torch.randn(24, 5).split(6), torch.randn(24, 3).split(6), strict=True)) * num_epochs
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with count_events(model) as counts:
            fit(model, parts, optimizer, loss=squared_error, grad_accum_steps=2)
        return counts.num_syncs

    assert syncs(1) == syncs(4)


def test_a_list_is_one_batch_or_many_and_a_name_settles_it():
    model = make_model()
    x, y = numbers()
    assert train_step(model, [x, y], sgd(model))["num_items"] == 24
    assert train_step(model, [[x, y], [x, y]], sgd(model))["num_items"] == 48
    sides = {"x": x}, {"y": y}
    loss = lambda model, batch: (F.cross_entropy(model(batch[0]["x"]), batch[1]["y"], reduction="sum"), 24)  # noqa: E731
    assert train_step(model, MicroBatches([sides]), sgd(model), loss=loss)["num_items"] == 24
    (record, _) = fit(model, [sides, sides], sgd(model), loss=loss, grad_accum_steps=2)
    assert (record["num_steps"], record["num_samples"]) == (1, 48)
    with pytest.raises(ValueError, match="at least one"):
        train_step(model, [], sgd(model))


def test_the_largest_micro_batch_is_found_for_an_own_loss():
    make_batch = lambda size: (torch.randn(size, 5), torch.randn(size, 3))  # noqa: E731
    size, _ = largest_micro_batch_size(
        make_model(), make_batch, loss=squared_error, max_size=4, memory_limit_bytes=10**9
    )
    assert size == 4


@pytest.fixture(scope="module")
def ids():
    pytest.importorskip("transformers")
    mask = torch.arange(9) < torch.tensor([9, 6, 4, 2])[:, None]
    tokens = torch.randint(3, 50, (4, 9), generator=torch.Generator().manual_seed(0)).where(mask, 0)
    return {"input_ids": tokens, "attention_mask": mask.long()}


def hf_model(kind):
    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
            num_labels=3,
        )  # fmt: skip
        return transformers.BertForSequenceClassification(config)
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16, num_labels=3, pad_token_id=0,
        bos_token_id=1, eos_token_id=1,
    )  # fmt: skip
    return getattr(transformers, kind)(config)


@pytest.mark.parametrize("kind", ["bert", "GPT2ForSequenceClassification"])
def test_a_hugging_face_model_trains_as_by_its_own_loss(ids, kind):
    labels = torch.tensor([0, 2, 1, 2])
    model, twin = hf_model(kind).eval(), hf_model(kind).eval()  # without dropout
    ids = {**ids, "token_type_ids": torch.arange(36).reshape(4, 9) % 2}
    batch = transformers.BatchEncoding({**ids, "labels": labels, "row": torch.arange(4)})
    metrics = train_step(model, batch, sgd(model), max_norm=math.inf)
    theirs = twin(**ids, labels=labels).loss
    theirs.backward()
    torch.testing.assert_close(metrics["loss"], theirs.detach())
    for (name, ours), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert (ours.grad is None) == (other.grad is None), name
        if ours.grad is not None:
            torch.testing.assert_close(ours.grad, other.grad, msg=name)


def test_a_hugging_face_language_model_shifts_itself_and_is_not_shifted_twice(ids):
    def its_own(model, batch):
        count = (batch["labels"][:, 1:] != -100).sum()
        return model(**batch).loss * count, count

    batch = {**ids, "labels": ids["input_ids"].where(ids["attention_mask"].bool(), -100)}
    model = hf_model("GPT2LMHeadModel").eval()
    with pytest.raises(
        UserError, match="GPT2LMHeadModel predicts the next token from labels that it shifts itself"
    ):
        train_step(model, batch, sgd(model))
    first, second = [
        {name: part[rows] for name, part in batch.items()} for rows in (slice(0, 1), slice(1, 4))
    ]
    (record, _) = fit(model, [first, second], sgd(model), loss=its_own, grad_accum_steps=2)
    assert record["loss"] == pytest.approx(hf_model("GPT2LMHeadModel").eval()(**batch).loss.item(), rel=1e-5)
    assert record["num_tokens"] == 21 and record["pad_fraction"] == pytest.approx(1 - 21 / 36)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("losses")
    torchrun(SCRIPTS / "two_losses.py", folder)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize(("case", "micro_batches"), [("copied", 6), ("split", 6), ("copied, one each", 2)])
def test_two_processes_end_as_one_that_accumulates(two_processes, case, micro_batches):
    alone = two_losses.train(Ranks(), lambda model: model, micro_batches)
    for found in (result[case] for result in two_processes):
        assert found["judged"]["num_items"] == alone["judged"]["num_items"]
        assert found["losses"] == pytest.approx(alone["losses"], rel=1e-6)  # the log is in fp32
        assert found["judged"]["loss"] == pytest.approx(alone["judged"]["loss"], rel=1e-10)
        for name, weight in alone["weights"].items():
            # Sums over processes are made in another order.
            torch.testing.assert_close(found["weights"][name], weight, rtol=1e-9, atol=1e-11)


def test_an_epoch_of_a_shuffling_loader_is_resumed_where_the_one_before_ended(tmp_path):
    """With dropout: both the order and the masks go on."""

    def run(max_epochs, path, checkpoint=None):
        torch.manual_seed(2)
        model = nn.Sequential(make_model(8), nn.Dropout(0.5), nn.Linear(8, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        state = TrainState()
        if checkpoint is not None:
            state = restore(load_checkpoint(checkpoint), model=model, optimizer=optimizer)
        make = lambda _: capture(state=state, model=model, optimizer=optimizer)  # noqa: E731
        saver = Checkpointer(path, tmp_path / "best.pt", make, every_steps=10**9)
        loader = DataLoader(TensorDataset(*numbers()), 5, shuffle=True)
        fit(model, loader, optimizer, state=state, max_epochs=max_epochs, callbacks=[saver])
        return weights_sha256(model)

    whole = run(3, tmp_path / "whole.pt")
    run(2, tmp_path / "part.pt")
    assert run(3, tmp_path / "rest.pt", tmp_path / "part.pt") == whole
