"""Exported files, loaded with torch and safetensors alone: equal logits at any batch size and width."""

import csv
import dataclasses
import json
import random

import pytest
import torch
from tokenizers import Tokenizer

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.data.tokenizer import save_tokenizer, train_tokenizer
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.train import run_training
from course_lib.runs.using.export import export_run
from course_lib.runs.using.predict import load_trained
from tests.everyday import first_of

safetensors = pytest.importorskip("safetensors")
MAX_LENGTH = 24
SHAPES = [(1, 1), (1, 7), (2, 2), (5, 24), (3, 11)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Called with settings, gives the folder of a run trained a few steps; the same one for the same settings."""
    root, made = tmp_path_factory.mktemp("runs"), {}
    rng = random.Random(0)
    with (root / "texts.csv").open("w", newline="") as file:
        texts = [
            " ".join(rng.choices(["a", "b", "c", "d", "e", "f"], k=rng.randint(2, 30))) for _ in range(60)
        ]
        csv.writer(file).writerows([("text", "label"), *((text, text[0]) for text in texts)])
    tokenizer = train_tokenizer(texts, vocab_size=280)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(root / "cache"))

        def run(task="classification", hf=None, **settings):
            key = json.dumps([task, hf, settings])
            if key not in made:
                if hf:
                    settings["hf_model"] = str(save_hf(root / hf, hf, tokenizer))
                config = TrainConfig(
                    data=str(root / "texts.csv"), task=task, max_length=MAX_LENGTH, d_model=16, num_layers=1,
                    vocab_size=280, max_steps=3, micro_batch_size=16, device="cpu", **settings,
                )  # fmt: skip
                made[key] = root / f"run{len(made)}"
                run_training(config, made[key], progress=False)
            return made[key]

        yield run


def save_hf(folder, kind, tokenizer):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("peft")
    size = tokenizer.get_vocab_size()
    if kind == "bert":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=size, **sizes))
    else:
        sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "bos_token_id": 2, "eos_token_id": 2}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **sizes))
    model.save_pretrained(folder)
    save_tokenizer(tokenizer, folder / "tokenizer.json")
    return folder


def make_inputs(rows, width):
    generator = torch.Generator().manual_seed(rows * 100 + width)
    lengths = torch.randint(1, width + 1, (rows, 1), generator=generator)
    lengths[0] = width
    mask = torch.arange(width) < lengths
    return torch.randint(3, 250, (rows, width), generator=generator) * mask, mask


def load_export(path):
    """Model and the files inside, as a program without course_lib would."""
    extra = {"tokenizer.json": "", "model.json": ""}
    return torch.export.load(path, extra_files=extra).module(), extra


def check_same_logits(model, run):
    trained = load_trained(run).model
    for rows, width in SHAPES:
        ids, mask = make_inputs(rows, width)
        with torch.inference_mode():
            expected = trained(ids, mask)
        with torch.no_grad():
            logits = model(ids, mask)
        real = mask if logits.ndim == 3 else slice(None)
        torch.testing.assert_close(logits[real], expected[real], rtol=1e-4, atol=1e-5)


OURS = [
    {},
    {"task": "language-modelling"},
    {"lora_rank": 2, "use_low_bit_base": True, "activation_checkpointing": True},
]
HF = [
    {"hf": "bert"},
    {"hf": "gpt2"},
    {"hf": "gpt2", "task": "language-modelling", "lora_rank": 2},
    {"hf": "bert", "lora_rank": 2, "use_low_bit_base": True},
]


@pytest.mark.parametrize("settings", first_of(OURS + HF), ids=str)
def test_a_graph_gives_equal_logits_at_any_batch_size_and_width(runs, tmp_path, settings):
    run = runs(**settings)
    path = export_run(run, "torch-export", tmp_path / "model.pt2")
    model, extra = load_export(path)
    check_same_logits(model, run)
    about = json.loads(extra["model.json"])
    assert about["task"] == settings.get("task", "classification")
    assert Tokenizer.from_str(extra["tokenizer.json"]).to_str() == load_trained(run).tokenizer.to_str()
    if about["task"] == "classification":
        assert about["label_names"] == sorted("abcdef")


@pytest.mark.parametrize("settings", OURS, ids=str)
def test_safetensors_hold_a_plain_model_with_adapters_merged(runs, tmp_path, settings):
    run = runs(**settings)
    path = export_run(run, "safetensors", tmp_path / "model.safetensors")
    with safetensors.safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["model.json"])
        tokenizer = Tokenizer.from_str(file.metadata()["tokenizer.json"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    names = ("task", "max_length", "d_model", "num_layers", "num_heads")
    model = make_model(
        ModelConfig(
            vocab_size=tokenizer.get_vocab_size(),
            num_classes=max(len(about["label_names"]), 1),
            **{name: about["config"][name] for name in names},
        )
    )
    model.load_state_dict(weights)
    check_same_logits(model.eval(), run)


def test_the_name_tells_run_step_and_weights(runs):
    run = runs()
    record = json.loads((run / "run.json").read_text())
    path = export_run(run, "safetensors")
    expected = f"{run.name}-step{record['best']['step']}-{record['best_weights_sha256'][:8]}.safetensors"
    assert path == run / "exports" / expected
    assert export_run(run, "safetensors") == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_model_that_no_graph_can_hold_is_refused_in_one_line(runs, tmp_path):
    config = dataclasses.replace(load_trained(runs()).config, max_length=1)  # of no width but one
    run_training(config, tmp_path / "run", progress=False)
    with pytest.raises(UserError, match=r"torch-export cannot hold this model: .*; take safetensors"):
        export_run(tmp_path / "run", "torch-export")
    assert list((tmp_path / "run" / "exports").iterdir()) == []
    assert export_run(tmp_path / "run", "safetensors").is_file()


def test_command_line(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(runs()), "--format", "torch-export", "--out", "model.pt2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": "model.pt2", "format": "torch-export"}
    check_same_logits(load_export(tmp_path / "model.pt2")[0], runs())
    (tmp_path / "file").touch()
    run, out = str(runs()), str(tmp_path / "file" / "model.pt2")
    for arguments in (
        ["nowhere", "--format", "safetensors"],
        [run, "--format", "torch-export", "--out", out],
    ):
        assert main(["export", *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and len(printed.err.splitlines()) == 1 and "unexpected" not in printed.err
