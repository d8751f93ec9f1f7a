"""A run of a Hugging Face model stands alone: its base may move away; and transformers itself loads what comes out."""

import csv
import dataclasses
import json
import random
import shutil
from pathlib import Path

import pytest
import torch

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.data.tokenizer import save_tokenizer, train_tokenizer
from course_lib.models.low_bit import Int8Linear
from course_lib.runs import Predictor, RunFolder, TrainConfig, export_run, run_training
from course_lib.runs.using.predict import load_trained
from tests.everyday import first_of
from tests.later import Later

transformers, hf = Later("transformers"), Later("course_lib.models.hf")
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
LETTERS = ["a", "b", "c"]
LINES = ["a b c", "b", "", "c c a a b", "a " * 40]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("texts") / "texts.csv", random.Random(0)
    lines = [" ".join(rng.choices(LETTERS, k=rng.randint(2, 12))) for _ in range(60)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((line, line[0]) for line in lines)])
    return path


@pytest.fixture(scope="module")
def make_base(texts):
    """Called with a folder and a kind, writes a tiny model with its tokenizer there."""
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    tokenizer = train_tokenizer(texts.read_text().split("\n"), vocab_size=280)

    def make(folder: Path, kind: str) -> Path:
        size = tokenizer.get_vocab_size()
        torch.manual_seed(0)
        if kind == "bert":
            model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=size, **SIZES))
        elif kind == "roberta":  # 26 positions, of which the padding's id 1 and all below are never taken
            config = transformers.RobertaConfig(
                vocab_size=size, max_position_embeddings=26, type_vocab_size=1, pad_token_id=1, **SIZES
            )
            model = transformers.RobertaForMaskedLM(config)
        else:
            config = transformers.GPT2Config(
                vocab_size=size, n_embd=16, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=2
            )
            model = transformers.GPT2LMHeadModel(config)
        model.save_pretrained(folder)
        save_tokenizer(tokenizer, folder / "tokenizer.json")
        return folder

    return make


@pytest.fixture
def train(tmp_path, texts, make_base, monkeypatch):
    """Called with a kind, trains a run whose base is then gone; returns its folder."""
    monkeypatch.setenv("COURSE_LIB_CACHE", str(texts.parent / "cache"))

    def trained(kind: str, **settings) -> Path:
        base = make_base(tmp_path / "base", kind)
        values = {
            "data": str(texts),
            "max_length": 24,
            "max_steps": 3,
            "micro_batch_size": 16,
            "device": "cpu",
        }
        values |= {"learning_rate": 0.01, "hf_model": str(base)}
        run_training(TrainConfig(**values | settings), tmp_path / "run", progress=False)
        shutil.rmtree(base)
        return tmp_path / "run"

    return trained


CASES = [
    ("bert", {"lora_rank": 2}),
    ("gpt2", {"lora_rank": 2, "use_low_bit_base": True}),
    ("roberta", {}),
    ("bert", {}),
    ("bert", {"lora_rank": 2, "use_low_bit_base": True}),
    ("gpt2", {}),
]


@pytest.mark.parametrize(("kind", "settings"), first_of(CASES, everyday=3), ids=str)
def test_transformers_loads_the_export_and_says_the_same(train, tmp_path, kind, settings):
    run = train(kind, **settings)
    folder = export_run(run, "hf", tmp_path / "out")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert type(model).__module__.startswith("transformers.")
    assert not any(isinstance(layer, Int8Linear) or "lora" in name for name, layer in model.named_modules())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.model_max_length == 24
    inputs = tokenizer(LINES, padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        shares = model(**inputs).logits.softmax(dim=-1)
    says = Predictor.load(run).predict(LINES)
    assert [model.config.id2label[int(at)] for at in shares.argmax(dim=-1)] == [label for label, _ in says]
    torch.testing.assert_close(
        shares.amax(dim=-1), torch.tensor([share for _, share in says]), rtol=1e-4, atol=1e-5
    )
    about = json.loads((folder / "model.json").read_text())
    assert about["label_names"] == LETTERS and about["step"] == 3


def test_a_pipeline_needs_the_folder_alone_and_the_command_names_it(train, tmp_path, capsys):
    run = train("bert")
    assert main(["export", str(run), "--format", "hf", "--json"]) == 0
    path = Path(json.loads(capsys.readouterr().out)["path"])
    assert path.parent == run.resolve() / "exports" and path.is_dir()
    answers = transformers.pipeline("text-classification", model=str(path), device="cpu")(LINES[:2])
    for answer, (label, share) in zip(answers, Predictor.load(run).predict(LINES[:2]), strict=True):
        assert answer["label"] == label and answer["score"] == pytest.approx(share, abs=1e-5)
    assert export_run(run, "hf") == path
    assert main(["export", str(run), "--format", "hf", "--out", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_an_exported_language_model_goes_on_with_a_text(train, tmp_path):
    run = train("gpt2", task="language-modelling", lora_rank=2)
    folder = export_run(run, "hf", tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(folder)("a b c", return_tensors="pt")
    ids = inputs["input_ids"]
    with torch.inference_mode():
        expected = load_trained(run).model(ids, torch.ones_like(ids))
        torch.testing.assert_close(model(**inputs).logits, expected, rtol=1e-4, atol=1e-5)
    assert model.generate(**inputs, max_new_tokens=3, do_sample=False, pad_token_id=0).shape[1] > ids.shape[1]


def test_a_number_is_exported_in_its_own_unit(train, tmp_path, texts):
    rows = [(text, 1000.0 + 10 * text.count("a")) for text, _ in csv.reader(texts.open())][1:]
    with (tmp_path / "numbers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    run = train("bert", task="regression", data=str(tmp_path / "numbers.csv"))
    folder = export_run(run, "hf", tmp_path / "out")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(LINES[:2], padding=True, return_tensors="pt")
    with torch.inference_mode():
        numbers = model(**inputs).logits[:, 0]
        expected = load_trained(run).model(inputs["input_ids"], inputs["attention_mask"])
    assert 900 < float(numbers.mean()) < 1200
    torch.testing.assert_close(numbers, expected, rtol=1e-4, atol=1e-3)


def test_several_labels_are_exported_as_such(train, tmp_path, texts):
    rows = [(text, ";".join(sorted(set(text.split())))) for text, _ in csv.reader(texts.open())][1:]
    with (tmp_path / "several.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    run = train("bert", task="multi-label", data=str(tmp_path / "several.csv"))
    folder = export_run(run, "hf", tmp_path / "out")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert model.config.problem_type == "multi_label_classification"
    assert list(model.config.id2label.values()) == LETTERS
    (answer,) = transformers.pipeline("text-classification", str(folder), top_k=None, device="cpu")(["a b"])
    inputs = transformers.AutoTokenizer.from_pretrained(folder)("a b", return_tensors="pt")
    with torch.inference_mode():
        shares = load_trained(run).model(inputs["input_ids"], inputs["attention_mask"]).sigmoid()[0]
    found = {each["label"]: each["score"] for each in answer}
    assert found == pytest.approx(dict(zip(LETTERS, shares.tolist(), strict=True)), abs=1e-5)


def test_an_interrupted_run_goes_on_after_its_base_has_moved(tmp_path, texts, make_base, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(texts.parent / "cache"))
    config = TrainConfig(
        data=str(texts), hf_model=str(make_base(tmp_path / "base", "bert")), max_length=24, max_steps=4,
        micro_batch_size=16, device="cpu", log_every_steps=1, checkpoint_every_steps=1, lora_rank=2,
    )  # fmt: skip
    whole = run_training(config, tmp_path / "whole", progress=False)

    class Stop(Later("course_lib.training").Callback):
        def on_safe_point(self, state):
            if state.step == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(config, tmp_path / "run", progress=False, callbacks=[Stop()])
    shutil.rmtree(tmp_path / "base")
    record = run_training(config, tmp_path / "run", progress=False, resume=True)
    assert record["weights_sha256"] == whole["weights_sha256"]


def test_a_run_begun_from_another_does_not_ask_for_the_base(train, tmp_path):
    config = TrainConfig.from_dict(RunFolder(run := train("bert")).read_config())
    later = dataclasses.replace(config, init_from=str(run), learning_rate=1e-30)
    run_training(later, tmp_path / "later", progress=False)
    shutil.rmtree(run)
    model = load_trained(tmp_path / "later").model
    assert export_run(tmp_path / "later", "hf").is_dir()
    assert sum(parameter.numel() for parameter in model.parameters()) > 0


def test_a_run_of_before_finds_its_base_where_it_was(tmp_path, texts, make_base, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(texts.parent / "cache"))
    base = make_base(tmp_path / "base", "bert")
    config = TrainConfig(data=str(texts), hf_model=str(base), max_length=24, max_steps=2, device="cpu")
    run_training(config, tmp_path / "run", progress=False)
    before = Predictor.load(tmp_path / "run").predict(LINES)
    shutil.rmtree(RunFolder(tmp_path / "run").hf_model)
    assert Predictor.load(tmp_path / "run").predict(LINES) == before
    folder = export_run(tmp_path / "run", "hf")
    assert transformers.AutoTokenizer.from_pretrained(folder)("a b")["input_ids"]
    shutil.rmtree(base)
    with pytest.raises(UserError, match=r"no Hugging Face checkpoint: it has no config\.json"):
        Predictor.load(tmp_path / "run")


def test_positions_of_models_of_robertas_kind_are_those_behind_the_padding(tmp_path, make_base):
    base = make_base(tmp_path / "base", "roberta")
    model = hf.load_hf_model(base, "classification", 2, max_length=24).eval()
    assert hf.num_positions(model.network) == 24
    ids = torch.full((1, 24), 7)
    model(ids, torch.ones_like(ids))  # the longest text that was promised
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, 25), 7), torch.ones(1, 25))
    with pytest.raises(UserError, match="has 24 positions: add --set max_length=24"):
        hf.load_hf_model(base, "classification", 2, max_length=25)
    assert (
        hf.num_positions(hf.load_hf_model(make_base(tmp_path / "bert", "bert"), "classification", 2).network)
        == 512
    )


@pytest.mark.parametrize(
    ("task", "name", "says"),
    [
        ("classification", "distilroberta-base", "AutoModel as M"),
        ("language-modelling", "some/gpt", "AutoModelForCausalLM as M"),
    ],
)
def test_a_name_of_a_hub_is_told_how_to_save_it(tmp_path, texts, capsys, monkeypatch, task, name, says):
    monkeypatch.chdir(tmp_path)
    command = [
        "train",
        "--data",
        str(texts),
        "--out",
        "run",
        "--set",
        f"hf_model={name}",
        "--set",
        f"task={task}",
    ]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"hf_model={name} is no folder here, and names of a hub are not fetched" in line
    assert says in line and f"from_pretrained('{name}').save_pretrained('DIR')" in line
    assert not (tmp_path / "run").exists()


def test_the_code_that_the_error_gives_makes_a_folder_that_trains(
    tmp_path, texts, make_base, monkeypatch, capsys
):
    """As after a download: the name stands for something that transformers finds, here a folder."""
    monkeypatch.chdir(tmp_path)
    command = [
        "train",
        "--data",
        str(texts),
        "--out",
        "run",
        "--set",
        "hf_model=name",
        "--set",
        "max_steps=2",
    ]
    assert main(command) == 2
    code = capsys.readouterr().err.partition("in Python: ")[2].partition("; then give")[0]
    make_base(tmp_path / "name", "bert")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    (tmp_path / "name" / "tokenizer_config.json").write_text(json.dumps(settings))
    exec(code, {})
    assert main([*command, "--set", "hf_model=DIR"]) == 0
    assert (tmp_path / "run" / "hf_model" / "config.json").exists()


def test_our_own_models_are_refused_plainly(tmp_path, texts, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(texts.parent / "cache"))
    config = TrainConfig(
        data=str(texts), max_length=24, d_model=16, num_layers=1, vocab_size=280, max_steps=1
    )
    run_training(config, tmp_path / "run", progress=False)
    assert main(["export", str(tmp_path / "run"), "--format", "hf"]) == 2
    printed = capsys.readouterr()
    assert "an architecture that from_pretrained does not know" in printed.err
    assert "take safetensors or torch-export" in printed.err and printed.out == ""
    assert not (tmp_path / "run" / "exports").exists()
