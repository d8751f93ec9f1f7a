"""Trained runs in use: the same answers as the model called by hand, in order, from lists, files and pipes."""

import csv
import json
import os
import random
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.data.tokenizer import train_tokenizer
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.runs.using.predict import Predictor, TrainedModel, load_trained
from course_lib.runs.using.tables import predict_table, predict_texts
from course_lib.runs.using.writing import write_table

TOPICS = {"cooking": "onion garlic oven bake flour", "sport": "team goal match coach player"}
SIZES = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 40, "max_epochs": 6}


def make_texts(number, seed=0):
    rng = random.Random(seed)
    rows = []
    for _ in range(number):
        label = rng.choice(list(TOPICS))
        words = rng.choices(["the", "a", "of", "and", "we"], k=rng.randint(0, 40)) + rng.choices(
            TOPICS[label].split(), k=4
        )
        rng.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A trained classifier and a trained language model."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch, (root / "texts.csv").open("w", newline="") as file:
        patch.setenv("COURSE_LIB_CACHE", str(root / "cache"))
        csv.writer(file).writerows([("text", "label"), *make_texts(240)])
        file.flush()
        for name, task in (("topics", "classification"), ("words", "language-modelling")):
            config = TrainConfig(data=str(root / "texts.csv"), task=task, learning_rate=1e-2, **SIZES)
            run_training(config, root / name, progress=False)
    return root


def by_hand(trained, text):
    """Logits [T, C] or [C] of one text, without batches."""
    ids = torch.tensor([trained.tokenizer.encode(text).ids[: trained.config.max_length]])
    with torch.inference_mode():
        return trained.model(ids, torch.ones_like(ids, dtype=torch.bool))[0]


def test_twin_text_by_text_gives_the_same_labels_in_the_same_order(runs):
    texts = [*(text for text, _ in make_texts(300, seed=1)), "", "garlic " * 500, "ÿ🙂", "two\nlines"]
    random.Random(2).shuffle(texts)
    answers, trained = Predictor.load(runs / "topics").predict(texts), load_trained(runs / "topics")
    assert len(answers) == len(texts)
    for text, (label, probability) in zip(texts, answers, strict=True):
        expected = by_hand(trained, text).softmax(-1)
        assert label == trained.label_names[int(expected.argmax())]
        assert probability == pytest.approx(float(expected.max()), abs=1e-5)


def test_what_was_learned_is_predicted(runs):
    rows = make_texts(100, seed=3)
    answers = Predictor.load(runs / "topics").predict([text for text, _ in rows])
    assert sum(label == truth for (label, _), (_, truth) in zip(answers, rows, strict=True)) > 90


def test_a_language_model_says_the_next_token(runs):
    texts = ["the onion", "", "a team of"]
    trained = load_trained(runs / "words")
    for text, (token, probability) in zip(texts, Predictor.load(runs / "words").predict(texts), strict=True):
        expected = by_hand(trained, text)[-1].softmax(-1)
        assert token == trained.tokenizer.decode([int(expected.argmax())])
        assert probability == pytest.approx(float(expected.max()), abs=1e-5)


def test_token_classification_labels_each_word_by_its_first_token():
    tokenizer = train_tokenizer(["def spam return eggs"] * 9, vocab_size=290)
    torch.manual_seed(0)
    names = ("name", "keyword", "operator")
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "num_classes": 3, "max_length": 12, "d_model": 16}
    model = make_model(ModelConfig(task="token-classification", **sizes)).eval().requires_grad_(False)
    config = TrainConfig(data="built-in", task="token-classification", max_length=12)
    trained = TrainedModel(model=model, tokenizer=tokenizer, label_names=names, config=config, step=1)
    texts = ["def unseen = spam", "", "x " * 30, "return eggs"]
    answers = Predictor(trained, device="cpu").predict(texts)
    for text, (labelled, probability) in zip(texts, answers, strict=True):
        ids, first = [2], []  # [CLS], then each word by itself
        for word in text.split():
            first.append(len(ids))
            ids += tokenizer.encode(word, add_special_tokens=False).ids
        first = [i for i in first if i < 12]
        logits = model(torch.tensor([ids[:12]]), torch.ones(1, len(ids[:12]), dtype=torch.bool))[0]
        expected = [
            f"{w}/{names[int(logits[i].argmax())]}" for w, i in zip(text.split(), first, strict=False)
        ]
        assert labelled == " ".join(expected)
        assert probability == pytest.approx(
            float(logits[first].softmax(-1).amax(-1).mean()) if first else 0.0, abs=1e-5
        )


def test_a_stream_is_taken_as_it_comes(runs):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "the onion"

    stream = Predictor.load(runs / "topics").stream(endless())
    assert [next(stream)[0] for _ in range(3)] == ["the onion"] * 3
    assert taken <= 5000


def test_a_folder_without_a_run_is_told(tmp_path):
    with pytest.raises(UserError, match=str(tmp_path)):
        Predictor.load(tmp_path)


def test_half_a_character_is_no_fault(runs):
    (text, (label, _)) = next(Predictor.load(runs / "topics").stream(["onion, garlic and flour \udcff"]))
    assert (text, label) == ("onion, garlic and flour ?", "cooking")


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(["predict", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def test_command_line_gives_label_probability_and_text(runs, command):
    texts = ["onion, garlic and flour", "the coach of\nthe team"]
    code, out, _ = command(runs / "topics", *texts)
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert [(label, text) for label, _, text in rows] == [
        ("cooking", texts[0]),
        ("sport", "the coach of the team"),
    ]
    assert all(0.5 <= float(probability) <= 1 for _, probability, _ in rows)


@pytest.mark.parametrize("name", ["new.csv", "new.jsonl", "new.txt"])
def test_command_line_reads_files_and_writes_a_table(runs, command, tmp_path, name):
    texts = ["onion, garlic and flour", "the coach of the team"]
    content = {
        "new.csv": 'id,text\n1,"onion, garlic and flour"\n2,the coach of the team\n',
        "new.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in texts),
        "new.txt": "\n".join(texts),
    }
    (tmp_path / name).write_text(content[name])
    code, out, _ = command(runs / "topics", "--file", name, "--out", "answers.csv")
    assert (code, out) == (0, "")
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as written:
        answers = list(csv.DictReader(written))
    expected = Predictor.load(runs / "topics").predict(texts)
    assert [(row["text"], row["label"]) for row in answers] == [
        (text, label) for text, (label, _) in zip(texts, expected, strict=True)
    ]
    assert [float(row["probability"]) for row in answers] == pytest.approx([p for _, p in expected])


def test_command_line_reads_standard_input_and_prints_json_alone(runs, command):
    texts = ["onion and garlic 🙂", "", "the team"]
    done = subprocess.run(
        [sys.executable, "-m", "course_lib", "predict", runs / "topics", "--json"],
        env={**os.environ, "PYTHONUTF8": "1"},
        input="\n".join(texts) + "\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    rows = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == ""
    assert [row["text"] for row in rows] == texts
    assert [(row["label"]) for row in rows[::2]] == ["cooking", "sport"]
    code, out, _ = command(runs / "topics", "--json", "--file", os.devnull)
    assert code == 0 and json.loads(out) == []


def test_command_line_errors_are_one_line_and_write_nothing(runs, command, tmp_path):
    (tmp_path / "bad.csv").write_text("text,label\nfine,x\na,b,c\n")
    cases = [
        (tmp_path / "nowhere", "a text"),
        (runs / "topics", "--file", tmp_path / "absent.txt"),
        (runs / "topics", "--file", tmp_path / "bad.csv", "--out", "answers.csv"),
        (runs / "topics", "a text", "--out", tmp_path / "bad.csv" / "answers.csv"),
    ]
    for arguments in cases:
        code, out, error = command(*arguments)
        assert code == 2 and out == ""
        assert len(error.splitlines()) == 1 and "unexpected" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


ROWS = [
    ["3", "onion, garlic and flour", "a", "x", "007"],
    ["1", "", "b", "", " "],
    ["2", "the coach of\nthe team", 'c "d"', "0", "1.50"],
    ["1", "  ", "b", "é", "1.50"],
]


def test_every_row_and_column_stays_as_it_was_and_in_its_place(runs, command, tmp_path):
    header = ["id", "text", "label", "", "n"]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *ROWS])
    before = (tmp_path / "in.csv").read_bytes()
    code, out, error = command(runs / "topics", "--file", "in.csv", "--out", "out.csv", "--all")
    assert (code, out) == (0, "") and "2 texts are blank" in error
    first, *rows = read_csv(tmp_path / "out.csv")
    added = ["predicted_label", "probability", "probability of cooking", "probability of sport"]
    assert first == [*header, *added] and [row[:5] for row in rows] == ROWS
    assert [row[5] for row in rows][::2] == ["cooking", "sport"]
    for row in rows:
        assert float(row[7]) + float(row[8]) == pytest.approx(1) and float(row[6]) == max(map(float, row[7:]))
    assert (tmp_path / "in.csv").read_bytes() == before
    assert command(runs / "topics", "--file", "in.csv", "--out", "again.tsv", "--top-k", "5")[0] == 0
    ranked = [line.split("\t") for line in (tmp_path / "again.tsv").read_text().splitlines()]
    assert ranked[0][5:] == [
        "predicted_label",
        "probability",
        "label_2",
        "probability_2",
    ]  # there are but two
    assert ranked[1][5] == "cooking" and ranked[1][7] == "sport"


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3).filter(lambda row: any(map(str.strip, row))), min_size=1)
)
def test_any_cells_come_back(runs, tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("cells")
    with (folder / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text", "b", "c"], *rows])
    found = predict_table(runs / "topics", folder / "in.csv")
    write_table(folder / "out.csv", found.columns, found, like=found.table)
    assert [row[:3] for row in read_csv(folder / "out.csv")[1:]] == rows


def test_json_lines_keep_every_key_and_nested_values(runs, command, tmp_path):
    rows = [{"text": "onion and garlic", "n": 1, "tags": ["a", {"b": None}]}, {"text": None, "new": True}]
    rows = [rows[0], *([{"text": "the team"}] * 1500), rows[1]]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command(runs / "topics", "--file", "in.jsonl", "--out", "out.jsonl")[0] == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(found) == len(rows)
    assert found[0] | rows[0] == found[0] and found[0]["label"] == "cooking" and found[-1]["new"] is True
    assert list(found[0]) == ["text", "n", "tags", "new", "label", "probability"]
    code, out, _ = command(runs / "topics", "--file", "in.jsonl", "--json")
    assert code == 0 and json.loads(out) == found


def test_parquet_keeps_its_types(runs, command, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import datetime

    table = arrow.table(
        {"day": [datetime.date(2026, 1, 2), None], "text": ["onion and garlic", ""], "n": [1, 2]}
    )
    parquet.write_table(table, tmp_path / "in.parquet")
    assert command(runs / "topics", "--file", "in.parquet", "--out", "out.parquet")[0] == 0
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.select(table.column_names).equals(table)
    assert found.column_names[3:] == ["label", "probability"] and found["label"][0].as_py() == "cooking"
    assert str(found.schema.field("probability").type) == "double"


def test_the_column_of_the_run_is_taken_or_the_one_that_is_named(runs, command, tmp_path):
    (tmp_path / "in.csv").write_text("review,id\nonion and garlic,1\n")
    code, out, error = command(runs / "topics", "--file", "in.csv")
    assert code == 0 and out.startswith("cooking\t") and out.endswith("\tonion and garlic\n")
    assert error.startswith('course-lib: text = "review"')
    code, out, _ = command(runs / "topics", "--file", "in.csv", "--set", "text_column=id")
    assert code == 0 and out.endswith("\t1\n")


@pytest.mark.parametrize(
    ("name", "content", "out", "says"),
    [
        ("in.csv", b"text,label\nonion,x\n", "in.csv", "never written over"),
        ("in.csv", b"text,label\nonion,x\n", "./sub/../in.csv", "never written over"),
        ("in.csv", b"text,label\nonion,x\n", "link.csv", "never written over"),
        ("in.csv", b"text\nonion\n", "out.xlsx", "must end in one of .csv"),
        ("in.xlsx", b"PK\x03\x04 and more\nonion\n", "out.csv", "Excel"),
        ("in.pdf", b"%PDF-1.7\nonion\n", "out.csv", "PDF"),
        ("in.gz", b"\x1f\x8b\x00\x01", "out.csv", "gzip"),
        ("in.csv", b'text,label\n"onion,x\nteam,y\n', "out.csv", "row 2"),
        ("in.csv", b"text,label\nonion,x\na,b,c\n", "out.csv", "row 3"),
        ("in.jsonl", b'{"text": "onion"}\nnonsense\n', "out.csv", "row 2"),
        ("in.parquet", b"onion\n", "out.csv", "in.parquet"),
        ("in.txt", b"onion\x00\n", "out.csv", "NUL"),
        ("in.txt", b"caf\xe9\n", "out.csv", "not UTF-8"),
    ],
)
def test_what_is_no_table_is_refused_and_nothing_is_touched(
    runs, command, tmp_path, name, content, out, says
):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / name)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, printed, error = command(runs / "topics", "--file", name, "--out", out)
    assert (code, printed) == (2, "") and says in error and error.count("\n") == 1
    assert "fault of course-lib" not in error
    assert (
        sorted(path.name for path in tmp_path.iterdir()) == before
        and (tmp_path / name).read_bytes() == content
    )


def test_a_ranking_is_the_order_of_the_probabilities(runs, command):
    (answer,) = Predictor.load(runs / "words").answers(["the onion"])
    expected = by_hand(load_trained(runs / "words"), "the onion")[-1].softmax(-1).sort(descending=True)
    assert [p for _, p in answer.top(5)] == pytest.approx(expected.values[:5].tolist(), abs=1e-5)
    code, out, _ = command(runs / "words", "the onion", "--top-k", "3")
    fields = out.rstrip("\n").split("\t")
    assert code == 0 and len(fields) == 7 and fields[-1] == "the onion"
    code, out, error = command(runs / "words", "the onion", "--all")
    assert code == 2 and "--top-k 10" in error and out == ""
    code, out, _ = command(runs / "topics", "onion", "--all")
    assert out.split("\t")[::2] == ["cooking", "sport", "onion\n"]
    assert command(runs / "topics", "onion", "--json", "--top-k", "2")[1].count("probability_2") == 1


def test_last_and_best_weights_answer_each_for_themselves(runs, command):
    steps = {weights: load_trained(runs / "topics", weights=weights).step for weights in ("best", "last")}
    assert steps["best"] <= steps["last"] == RunFolder(runs / "topics").read_record()["step"]
    (answer,) = predict_texts(runs / "topics", ["garlic"], weights="last").answered()
    last = load_trained(runs / "topics", weights="last")
    assert answer[1].scores == pytest.approx(by_hand(last, "garlic").softmax(-1).numpy(), abs=1e-5)
    assert command(runs / "topics", "garlic", "--weights", "last")[0] == 0
