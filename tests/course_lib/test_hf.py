"""Hugging Face checkpoints from a folder: trained as the network's own loss would train them, saved and loaded."""

import json

import pytest
import torch

from course_lib.base.errors import UserError
from course_lib.data.tokenizer import save_tokenizer, train_tokenizer
from course_lib.models.lora import add_lora, merge_lora
from course_lib.models.low_bit import Int8Linear, quantize_frozen
from course_lib.training.loop import evaluate, train_step
from course_lib.training.memory import apply_activation_checkpointing
from tests.later import Later

transformers, hf = Later("transformers"), Later("course_lib.models.hf")
CASES = [
    ("bert", "classification"),
    ("bert", "token-classification"),
    ("gpt2", "classification"),
    ("gpt2", "token-classification"),
    ("gpt2", "language-modelling"),
]
NUM_CLASSES = 3


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A random BERT and a random GPT-2, each with a tokenizer trained here."""
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    root = tmp_path_factory.mktemp("hf")
    tokenizer = train_tokenizer(["a cat sat on a mat", "dogs chase cats", "the end"] * 5, vocab_size=300)
    size = tokenizer.get_vocab_size()
    torch.manual_seed(0)
    bert = transformers.BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, pad_token_id=0,
    )  # fmt: skip
    gpt2 = transformers.GPT2Config(
        vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=40, bos_token_id=2, eos_token_id=2
    )
    transformers.BertForMaskedLM(bert).save_pretrained(root / "bert")
    transformers.GPT2LMHeadModel(gpt2).save_pretrained(root / "gpt2")
    for name in ("bert", "gpt2"):
        save_tokenizer(tokenizer, root / name / "tokenizer.json")
    return root


def load(folders, kind, task):
    torch.manual_seed(1)  # the head is new
    return hf.load_hf_model(folders / kind, task, NUM_CLASSES)


def make_batch(task, seed=0, pad_id=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(12) < torch.tensor([12, 9, 5, 2])[:, None]
    ids = torch.randint(3, 250, (4, 12), generator=generator).where(mask, pad_id)
    if task == "classification":
        labels = torch.tensor([0, 1, 2, 1])
    elif task == "token-classification":
        labels = (ids % NUM_CLASSES).where(mask, -100)
    else:
        labels = torch.full_like(ids, -100)
        labels[:, :-1] = ids[:, 1:].where(mask[:, 1:], -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize(("kind", "task"), CASES)
def test_twin_with_the_networks_own_loss_ends_with_equal_weights(folders, kind, task):
    model, twin = load(folders, kind, task), load(folders, kind, task).network
    model.train(), twin.train()
    ours, plain = (torch.optim.AdamW(one.parameters(), lr=1e-3) for one in (model, twin))
    torch.manual_seed(2)
    for seed in range(3):
        train_step(model, make_batch(task, seed), ours)
    torch.manual_seed(2)
    for seed in range(3):
        batch = make_batch(task, seed)
        if task == "language-modelling":  # there the shift is the network's
            batch["labels"] = batch["input_ids"].where(batch["attention_mask"], -100)
        plain.zero_grad()
        twin(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        plain.step()
    for parameter, expected in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("kind", "task"), CASES)
def test_logits_have_the_tasks_shape_and_do_not_see_padding(folders, kind, task):
    model = load(folders, kind, task).eval()
    batch, other = make_batch(task), make_batch(task, pad_id=17)
    logits = model(batch["input_ids"], batch["attention_mask"])
    classes = 300 if task == "language-modelling" else NUM_CLASSES
    classes = model.network.config.vocab_size if task == "language-modelling" else classes
    assert logits.shape == ((4, classes) if task == "classification" else (4, 12, classes))
    assert logits.dtype == torch.float32
    assert torch.equal(model(other["input_ids"], other["attention_mask"]), logits)
    alone = model(batch["input_ids"][2:3, :5], batch["attention_mask"][2:3, :5])[0]
    expected = logits[2] if task == "classification" else logits[2, :5]
    torch.testing.assert_close(alone, expected, rtol=1e-4, atol=1e-5)
    assert 0.0 <= evaluate(model, [batch])["accuracy"] <= 1.0


def test_saved_weights_go_into_a_model_from_the_same_folder(folders, tmp_path):
    model = load(folders, "bert", "classification")
    train_step(model, make_batch("classification"), torch.optim.AdamW(model.parameters()))
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = hf.load_hf_model(folders / "bert", "classification", NUM_CLASSES)
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    batch = make_batch("classification")
    inputs = batch["input_ids"], batch["attention_mask"]
    assert torch.equal(other.eval()(*inputs), model.eval()(*inputs))


@pytest.mark.parametrize(("kind", "task"), CASES)
@pytest.mark.parametrize("low_bit", [False, True])
def test_peft_adapters_learn_and_the_base_stays(folders, kind, task, low_bit):
    base, model = load(folders, kind, task), load(folders, kind, task)
    batch = make_batch(task)
    inputs = batch["input_ids"], batch["attention_mask"]
    model = add_lora(model, rank=2)
    torch.testing.assert_close(model.eval()(*inputs), base.eval()(*inputs))
    if low_bit:
        quantize_frozen(model)
        assert sum(isinstance(layer, Int8Linear) for layer in model.modules()) >= 8
        torch.testing.assert_close(model(*inputs), base(*inputs), rtol=0.1, atol=0.05)
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert all("lora_" in name or "modules_to_save" in name for name in learning)
    assert any("modules_to_save" in name for name in learning) == (task != "language-modelling")
    frozen = {name: t.clone() for name, t in model.state_dict().items() if name not in learning}
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = [float(train_step(model, batch, optimizer)["loss"]) for _ in range(8)]
    assert losses[-1] < losses[0]
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in frozen.items())
    after = model.eval()(*inputs)
    merged = merge_lora(model)
    torch.testing.assert_close(merged(*inputs), after, rtol=1e-4, atol=1e-5)
    assert [(name, weight.shape) for name, weight in merged.state_dict().items()] == [
        (name, weight.shape) for name, weight in base.state_dict().items()
    ]


@pytest.mark.parametrize("with_lora", [False, True])
@pytest.mark.parametrize(("kind", "task"), [CASES[0], CASES[4]])
def test_activation_checkpointing_gives_the_same_gradients(folders, kind, task, with_lora):
    grads = []
    for change in (lambda model: model, apply_activation_checkpointing):
        model = load(folders, kind, task)
        model = change(add_lora(model, rank=2) if with_lora else model).train()
        names = list(model.state_dict())
        torch.manual_seed(3)
        loss = train_step(model, make_batch(task), torch.optim.SGD(model.parameters(), lr=0.0))["loss"]
        grads.append((names, loss, [p.grad for p in model.parameters() if p.grad is not None]))
    (names, loss, twin_grads), (names_now, loss_now, grads_now) = grads
    assert names_now == names and torch.equal(loss_now, loss) and len(grads_now) == len(twin_grads)
    assert all(torch.equal(a, b) for a, b in zip(grads_now, twin_grads, strict=True))


def test_a_head_of_another_size_and_an_old_number_format_are_replaced(folders, tmp_path):
    path = tmp_path / "five"
    five = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert", num_labels=5)
    five.to(torch.bfloat16).save_pretrained(path)
    (path / "tokenizer.json").write_bytes((folders / "bert" / "tokenizer.json").read_bytes())
    model = hf.load_hf_model(path, "classification", 2)
    assert model.network.classifier.weight.shape == (2, 16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def broken(folders, path, *, config=None, without=()):
    path.mkdir()
    for file in (folders / "bert").iterdir():
        if file.name not in without:
            (path / file.name).write_bytes(file.read_bytes())
    if config is not None:
        (path / "config.json").write_text(config)
    return path


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"without": ["config.json"]}, "has no config.json"),
        ({"without": ["tokenizer.json"]}, "has no tokenizer.json"),
        ({"without": ["model.safetensors"]}, "model.safetensors"),
        ({"config": "{"}, "not a valid JSON"),
        ({"config": json.dumps({"model_type": "nope"})}, "model type `nope`"),
        ({"config": json.dumps({"model_type": "vit"})}, "cannot be loaded"),
        ({"config": "[]"}, "cannot be loaded"),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_in_one_line(folders, tmp_path, changes, says, capfd):
    path = broken(folders, tmp_path / "odd", **changes)
    with pytest.raises(UserError, match="save_pretrained") as error:
        hf.load_hf_model(path, "classification", 2)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert "Traceback" not in capfd.readouterr().err


def test_weights_that_are_cut_off_a_missing_folder_and_too_long_texts(folders, tmp_path):
    path = broken(folders, tmp_path / "cut")
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match="cannot be loaded"):
        hf.load_hf_model(path, "classification", 2)
    with pytest.raises(UserError, match=r"no config\.json"):
        hf.load_hf_model(tmp_path / "absent", "classification", 2)
    with pytest.raises(UserError, match="has 40 positions: add --set max_length=40"):
        hf.load_hf_model(folders / "gpt2", "classification", 2, max_length=41)
