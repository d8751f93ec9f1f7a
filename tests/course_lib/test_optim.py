"""Each optimizer against its plain twin, to equal weights; what decays; how fast each layer learns; resume."""

import copy
import io
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.base.errors import UserError
from course_lib.cli.common import keys_help
from course_lib.measuring.counters import count_events
from course_lib.models.transformers import ModelConfig, TextClassifier
from course_lib.runs.config import CHOICES
from course_lib.training.loop import train_step
from course_lib.training.optim import (
    choose_optimizer,
    make_optimizer,
    parameter_groups,
    resolve_epochs,
    resolve_fused,
    resolve_optimizer,
)
from course_lib.training.precision import DTYPES
from course_lib.training.registry import OPTIMIZERS, SCHEDULES, OptimizerEntry
from course_lib.training.schedules import make_schedule

NEEDS = {"lamb": "pytorch_optimizer", "adamw-8bit": "bitsandbytes"}


def make_model(num_layers=2, d_model=16, vocab_size=30):
    torch.manual_seed(3)
    sizes = {"vocab_size": vocab_size, "num_classes": 3, "max_length": 12, "num_heads": 2, "dropout": 0.0}
    return TextClassifier(ModelConfig(**sizes, d_model=d_model, num_layers=num_layers))


def make_batch(seed=0, rows=16, vocab_size=30):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab_size, (rows, 12), generator=generator)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones(rows, 12, dtype=torch.bool),
        "labels": ids[:, 0] % 3,
    }


def plain_twin(name, parameters):
    """The update of one parameter group without decay, written from the papers."""
    state = [[torch.zeros_like(p), torch.zeros_like(p)] for p in parameters]

    def step(number, learning_rate, weight_decay):
        with torch.no_grad():
            for p, (first, second) in zip(parameters, state, strict=True):
                decay = weight_decay if p.ndim >= 2 else 0.0
                grad = p.grad
                if name != "adamw":
                    grad = grad + decay * p
                else:
                    p.mul_(1 - learning_rate * decay)
                if name == "sgd":
                    first.mul_(0.9).add_(grad)
                    p.sub_(learning_rate * first)
                    continue
                first.mul_(0.9).add_(0.1 * grad)
                second.mul_(0.999).add_(0.001 * grad**2)
                mean, square = first / (1 - 0.9**number), second / (1 - 0.999**number)
                p.sub_(learning_rate * mean / (square.sqrt() + 1e-8))

    return step


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_ends_with_the_weights_of_the_update_written_by_hand(name):
    ours, theirs, start = make_model(), make_model(), make_model()
    for model in (ours, theirs):
        for (
            block
        ) in model.blocks:  # a key's bias has no gradient but rounding noise, which Adam would blow up
            block.query_key_value.bias.requires_grad_(False)
    optimizer = make_optimizer(ours, name, learning_rate=1e-2, weight_decay=0.1)
    step = plain_twin(name, [p for p in theirs.parameters() if p.requires_grad])
    for number in range(1, 11):
        batch = make_batch(number)
        train_step(ours, batch, optimizer, max_norm=float("inf"))
        theirs.zero_grad()
        F.cross_entropy(theirs(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
        step(number, 1e-2, 0.1)
    mine, other, before = (torch.cat([p.flatten() for p in m.parameters()]) for m in (ours, theirs, start))
    # Of the way they went: where a gradient is hardly more than rounding noise, Adam makes a whole step of it.
    assert (mine - other).norm() <= 1e-4 * (other - before).norm()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trains_and_resumes_to_the_bit(name):
    pytest.importorskip(NEEDS.get(name, "torch"))

    def make():
        model = make_model(
            num_layers=1, d_model=64, vocab_size=100
        )  # 64 × 256 weights: large enough for 8 bits
        optimizer = make_optimizer(model, name, learning_rate=5e-2 if name == "sgd" else 5e-3)
        return model, optimizer, make_schedule(optimizer, "linear", max_steps=200)

    def run(model, optimizer, schedule, steps):
        batches = [make_batch(step % 4, 32, 100) for step in steps]
        return [
            float(train_step(model, batch, optimizer, scheduler=schedule, max_norm=1.0)["loss"])
            for batch in batches
        ]

    model, optimizer, schedule = make()
    losses = run(model, optimizer, schedule, range(40))
    assert losses[-1] < 0.7 * losses[0]
    buffer = io.BytesIO()
    torch.save([x.state_dict() for x in (model, optimizer, schedule)], buffer)
    rest = run(model, optimizer, schedule, range(40, 50))
    buffer.seek(0)
    resumed = make()
    for part, state in zip(resumed, torch.load(buffer, weights_only=True), strict=True):
        part.load_state_dict(state)
    assert run(*resumed, range(40, 50)) == rest
    assert all(map(torch.equal, model.parameters(), resumed[0].parameters()))


def test_muon_ends_to_the_bit_where_two_optimizers_of_torch_end_one_beside_the_other():
    ours, theirs = make_model(), make_model()
    inside = [p for p in theirs.blocks.parameters() if p.ndim == 2]
    outside = [theirs.token_embedding.weight, theirs.position_embedding.weight, theirs.head.weight]
    vectors = [p for p in theirs.parameters() if p.ndim < 2]
    assert len(inside) == 8 and len(inside + outside + vectors) == len(list(theirs.parameters()))
    optimizer = make_optimizer(ours, "muon", learning_rate=1e-2, weight_decay=0.1)
    by_hand = [
        torch.optim.Muon(inside, lr=1e-2, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(
            [{"params": outside, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
            lr=1e-2,
            fused=True,
        ),
    ]
    for number in range(4):
        batches = [make_batch(2 * number, rows=8), make_batch(2 * number + 1, rows=16)]
        train_step(ours, batches, optimizer, max_norm=0.5)
        theirs.zero_grad()
        for batch in batches:
            logits = theirs(batch["input_ids"], batch["attention_mask"])
            (F.cross_entropy(logits, batch["labels"], reduction="sum") * (1 / torch.tensor(24))).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        for one in by_hand:
            one.step()
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))


def test_muon_is_one_optimizer_to_schedules_copies_counters_and_scalers():
    model = make_model()
    optimizer = make_optimizer(model, "muon", learning_rate=0.5, embedding_lr_ratio=4.0)
    assert optimizer.defaults["lr"] == 0.5
    held = [p for group in optimizer.param_groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))
    schedule = make_schedule(optimizer, "linear", max_steps=10)
    with count_events(model) as counts:
        train_step(model, make_batch(), optimizer, scheduler=schedule)
    assert counts.num_optimizer_steps == 1
    assert [group["lr"] / group["lr_scale"] for group in optimizer.param_groups] == pytest.approx([0.45] * 4)
    twin, copied = copy.deepcopy((model, optimizer))
    for one, update in ((model, optimizer), (twin, copied)):
        train_step(one, make_batch(1), update)
    assert all(map(torch.equal, model.parameters(), twin.parameters()))
    before = [p.detach().clone() for p in model.parameters()]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    loss = F.cross_entropy(model(*list(make_batch(2).values())[:2]), make_batch(2)["labels"])
    scaler.scale(loss * torch.inf).backward()
    scaler.step(optimizer)
    assert all(map(torch.equal, model.parameters(), before))  # a step to be skipped is skipped by all parts


def test_auto_takes_muon_where_it_can_be_and_says_why_not(monkeypatch):
    model = make_model()
    assert choose_optimizer(model, is_fresh=True) == ("muon", "auto: it needs fewer steps than adamw")
    pretrained = choose_optimizer(model, is_fresh=False)
    sharded = choose_optimizer(model, is_fresh=True, is_sharded=True)
    without_blocks = choose_optimizer(nn.Linear(2, 2), is_fresh=True)
    monkeypatch.delattr(torch.optim, "Muon")
    old = choose_optimizer(model, is_fresh=True)
    for found, why in (
        (pretrained, "trained before"),
        (sharded, "fsdp splits"),
        (without_blocks, "no blocks"),
        (old, "needs torch 2.9 or later"),
    ):
        assert found[0] == "adamw" and found[1].startswith("auto: ") and why in found[1]


@pytest.mark.parametrize(
    "model", [nn.Linear(2, 2), nn.ModuleDict({"tables": nn.ModuleList([nn.Embedding(4, 2)])})]
)
def test_without_matrices_in_blocks_there_is_no_muon(model):
    with pytest.raises(UserError, match=r"^muon needs a model with an nn.ModuleList of blocks.*$"):
        make_optimizer(model, "muon")


def test_an_old_torch_has_no_muon_and_says_so_in_one_line(monkeypatch):
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(UserError, match=r"^muon needs torch 2.9 or later, here is 2[^\n]*take adamw$"):
        make_optimizer(make_model(), "muon")


def state_bytes(optimizer):
    tensors = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    return sum(tensor.nbytes for tensor in tensors)


def test_8_bit_adamw_keeps_a_quarter_of_the_state_and_stays_near_adamw():
    pytest.importorskip("bitsandbytes")
    trained = {}
    for name in ("adamw", "adamw-8bit", "adafactor"):
        model = make_model(num_layers=2, d_model=128, vocab_size=500)
        optimizer = make_optimizer(model, name, learning_rate=1e-3)
        losses = [float(train_step(model, make_batch(k % 4, 32, 500), optimizer)["loss"]) for k in range(30)]
        trained[name] = losses, state_bytes(optimizer)
    assert trained["adamw-8bit"][1] < 0.3 * trained["adamw"][1]
    assert trained["adafactor"][1] < 0.1 * trained["adamw"][1]
    assert trained["adamw-8bit"][0] == pytest.approx(trained["adamw"][0], rel=0.1, abs=0.02)


@pytest.mark.further
def test_8_bit_adamw_needs_no_compiler(tmp_path):
    pytest.importorskip("bitsandbytes")
    code = """
import torch
from course_lib.training.optim import make_optimizer
model = torch.nn.Linear(128, 128)
before = model.weight.detach().clone()
optimizer = make_optimizer(model, "adamw-8bit")
model(torch.randn(4, 128)).square().sum().backward()
optimizer.step()
assert optimizer.state[model.weight]["state1"].dtype == torch.uint8
assert not torch.equal(before, model.weight)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": str(tmp_path), "CXX": "/none", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_norms_and_biases_do_not_decay():
    model = make_model()
    decayed, plain = parameter_groups(model, 0.1)
    assert (decayed["name"], plain["name"]) == ("decay", "no_decay")
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.1, 0.0)
    names = {id(p): name for name, p in model.named_parameters()}
    assert all(names[id(p)].endswith("weight") and "norm" not in names[id(p)] for p in decayed["params"])
    assert all("norm" in names[id(p)] or names[id(p)].endswith("bias") for p in plain["params"])
    assert len(decayed["params"]) + len(plain["params"]) == len(names)


def rate_of(model, optimizer):
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: rates[id(p)] for name, p in model.named_parameters()}


def test_embeddings_learn_faster_by_their_ratio_and_decay_like_matrices():
    model = make_model(num_layers=2)
    rates = rate_of(model, make_optimizer(model, learning_rate=0.5, embedding_lr_ratio=4.0))
    assert {path: rate for path, rate in rates.items() if rate != 0.5} == {
        "token_embedding.weight": 2.0,
        "position_embedding.weight": 2.0,
    }
    groups = {group["name"]: group for group in parameter_groups(model, 0.1, 0.5, embedding_lr_ratio=4.0)}
    assert groups["embeddings.tokens"]["lr_scale"] == 4.0 * 0.5**3
    assert groups["embeddings.tokens"]["weight_decay"] == 0.1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_layers_near_the_input_learn_more_slowly(name):
    pytest.importorskip(NEEDS.get(name, "torch"))
    model = make_model(num_layers=2)
    optimizer = make_optimizer(model, name, learning_rate=1.0, layer_decay=0.5)
    for path, rate in rate_of(model, optimizer).items():
        depth = {"blocks.0": 1, "blocks.1": 2}.get(path[:8], 0 if "embedding" in path else 3)
        assert rate == 0.5 ** (3 - depth), path
    names = [group["name"] for group in optimizer.param_groups if not group["name"].endswith("matrices")]
    assert names[0] == "embeddings.decay"
    assert names[-2:] == ["head.decay", "head.no_decay"]
    assert "blocks.1.no_decay" in names
    moved = {path: p.detach().clone() for path, p in model.named_parameters()}
    schedule = make_schedule(optimizer, "linear", max_steps=10)
    train_step(model, make_batch(), optimizer, scheduler=schedule)
    assert all(not torch.equal(p, moved[path]) for path, p in model.named_parameters() if p.grad.any())
    assert rate_of(model, optimizer)["head.weight"] == pytest.approx(0.9)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_blocks_of_hugging_face_models_are_found(kind):
    transformers = pytest.importorskip("transformers")
    if kind == "bert":
        sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
        config = transformers.BertConfig(vocab_size=40, **sizes)
        model, first, last, head = (
            transformers.BertForSequenceClassification(config),
            "bert.embeddings",
            ("bert.encoder.layer.2"),
            "classifier",
        )
    else:
        config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=3, n_head=2, n_positions=16)
        model, first, last, head = (
            transformers.GPT2LMHeadModel(config),
            "transformer.wte",
            "transformer.h.2",
            ("transformer.ln_f"),
        )
    rates = rate_of(model, make_optimizer(model, learning_rate=1.0, layer_decay=0.5))
    for prefix, rate in ((first, 0.5**4), (last, 0.5), (head, 1.0)):
        found = {value for path, value in rates.items() if path.startswith(prefix)}
        assert found == {rate}, prefix


def test_without_blocks_there_is_no_layer_decay():
    with pytest.raises(UserError, match=r"ModuleList.*layer_decay to 1"):
        make_optimizer(nn.Linear(2, 2), layer_decay=0.9)


def test_frozen_parameters_stay_out():
    model = make_model()
    model.token_embedding.requires_grad_(False)
    optimizer = make_optimizer(model)
    assert id(model.token_embedding.weight) not in {
        id(p) for g in optimizer.param_groups for p in g["params"]
    }
    with pytest.raises(UserError, match="unfreeze one"):
        make_optimizer(model.requires_grad_(False))


def test_fused_where_it_can_be_with_the_reason():
    model = make_model()
    assert resolve_fused(model) == (True, "fused: one kernel updates each group of parameters")
    assert all(make_optimizer(model, name).defaults["fused"] for name in ("sgd", "adam", "adamw"))
    assert resolve_optimizer("adamw", model) == "adamw (fused: one kernel updates each group of parameters)"
    assert resolve_optimizer("lamb", model).startswith("lamb (not fused: ")
    somewhere = nn.Linear(2, 2, device="meta")
    assert resolve_fused(somewhere) == (False, "not fused: weight is on meta, which has no fused kernel")
    assert make_optimizer(somewhere).defaults["fused"] is None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimizer_reads_a_tensor_of_the_loop(name):
    pytest.importorskip(NEEDS.get(name, "torch"))
    model = make_model()
    optimizer = make_optimizer(model, name)
    with count_events(model) as counts:
        train_step(model, make_batch(), optimizer)
    # torch's Adafactor asks every parameter for its norm, and every gradient for its own.
    assert (counts.num_syncs == 0) is (name != "adafactor")


def test_one_entry_of_the_registry_is_all_that_an_optimizer_needs(monkeypatch):
    entry = OptimizerEntry(
        about="Tieleman and Hinton, 2012",
        make=lambda asked: torch.optim.RMSprop(asked.groups, lr=asked.learning_rate),
        resolves_to="not fused",
    )
    monkeypatch.setitem(OPTIMIZERS, "rmsprop", entry)
    model = make_model()
    assert isinstance(make_optimizer(model, "rmsprop"), torch.optim.RMSprop)
    assert resolve_optimizer("rmsprop", model) == "rmsprop (not fused)"


def test_config_command_line_and_documentation_know_what_the_registry_knows():
    assert CHOICES["optimizer"] == ("auto", *OPTIMIZERS)
    assert CHOICES["schedule"] == SCHEDULES
    assert CHOICES["precision"] == ("auto", *DTYPES)
    help_text = re.sub("or |[(),]", "", keys_help())
    for name, entry in OPTIMIZERS.items():
        assert name in help_text.split() and f"`{name}`: {entry.about}" in make_optimizer.__doc__
    assert {*SCHEDULES, *DTYPES} <= set(help_text.split())
    assert {name for name, entry in OPTIMIZERS.items() if entry.can_shard} == {"sgd", "adam", "adamw"}


def test_an_unknown_name_is_answered_with_those_that_are_known():
    with pytest.raises(UserError, match="no optimizer 'adamW': take one of sgd, adam, adamw, adafactor"):
        make_optimizer(make_model(), "adamW")


@pytest.mark.parametrize("name", NEEDS)
def test_an_absent_package_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, NEEDS[name], None)
    with pytest.raises(UserError, match=r'pip install "training-workbook\[optimizers\]"'):
        make_optimizer(make_model(), name)


def test_epochs_as_asked_for_or_by_the_size_of_the_data():
    assert resolve_epochs(10, max_epochs=7)[0] == 7
    assert resolve_epochs(10, max_steps=25)[0] == 3
    assert [resolve_epochs(steps)[0] for steps in (1, 20, 10_000)] == [100, 25, 3]
