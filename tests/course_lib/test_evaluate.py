"""`course-lib evaluate` against the same scores by hand, for every task; what it refuses; what it shows."""

import csv
import json
import math
import random
import re
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.runs.using.calibration import NUM_BINS, calibration, interval
from course_lib.runs.using.evaluate import evaluate_run
from course_lib.runs.using.pages import evaluation_html, evaluation_text
from course_lib.runs.using.predict import Predictor, load_trained
from course_lib.runs.using.rows import open_for_run

TOPICS = {
    "cooking": "onion garlic oven bake",
    "sport": "team goal match coach",
    "travel": "hotel train beach sea",
}
SMALL = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "learning_rate": 1e-2,
         "precision": "32-true", "device": "cpu", "micro_batch_size": 16, "max_steps": 25}  # fmt: skip


def made(number, seed):
    """(text, topic, number of words) of each row; one in eight is about another topic than it says."""
    rng = random.Random(seed)
    for _ in range(number):
        topic = rng.choice([*TOPICS])
        about = rng.choice([*TOPICS]) if rng.random() < 0.125 else topic
        words = rng.choices(TOPICS[about].split(), k=rng.randint(1, 5)) + ["the"] * rng.randint(0, 15)
        yield " ".join(words), topic, len(words)


def write(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(root / "cache"))
        yield root


@pytest.fixture(scope="module")
def topics(root):
    """A classifier, trained on columns with names of their own."""
    rows = ((n, text, topic) for text, topic, n in made(120, 0))
    data = write(root / "train.csv", ("n", "body", "topic"), rows)
    config = TrainConfig(data=str(data), text_column="body", label_column="topic", **SMALL)
    run_training(config, root / "topics", progress=False)
    return root / "topics"


@pytest.fixture(scope="module")
def test_rows():
    return [*made(200, 1)]


@pytest.fixture(scope="module")
def found(root, topics, test_rows):
    rows = [(text, topic, "few" if n < 8 else "many") for text, topic, n in test_rows]
    write(root / "test.csv", ("body", "topic", "words"), rows)
    return evaluate_run(topics, root / "test.csv", slices=["words"])


def test_scores_are_those_made_by_hand(topics, test_rows, found):
    answers = [*Predictor.load(topics).answers(text for text, _, _ in test_rows)]
    truth = [topic for _, topic, _ in test_rows]
    said = [answer.label for answer in answers]
    is_right = np.array(said) == np.array(truth)
    assert found["scores"]["accuracy"] == pytest.approx(is_right.mean())
    assert found["scores"]["num_items"] == found["num_rows"] == 200
    losses = [-math.log(dict(answer.top())[topic]) for answer, topic in zip(answers, truth, strict=True)]
    assert found["scores"]["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    names = [*TOPICS]
    counts = [[sum((t, s) == (a, b) for t, s in zip(truth, said, strict=True)) for b in names] for a in names]
    assert found["confusion"] == counts
    f1 = [2 * counts[i][i] / (sum(counts[i]) + sum(row[i] for row in counts)) for i in range(3)]
    assert found["scores"]["macro_f1"] == pytest.approx(np.mean(f1))
    assert [row["f1"] for row in found["per_class"]] == pytest.approx(f1)
    low, high = found["scores"]["accuracy_interval"]
    assert low < is_right.mean() < high
    assert found["baseline"]["accuracy"] == max(map(truth.count, names)) / 200


def test_slices_and_errors_are_of_the_rows_they_name(found, test_rows):
    by_words = {row["slice"]: row for row in found["slices"]["words"]}
    assert by_words["few"]["num_items"] == sum(n < 8 for _, _, n in test_rows)
    for rows in found["slices"].values():
        assert sum(row["num_items"] for row in rows) == 200
        hits = sum(row["num_items"] * row["accuracy"] for row in rows)
        assert hits == pytest.approx(200 * found["scores"]["accuracy"])
    losses = [row["loss"] for row in found["errors"]]
    assert (losses == sorted(losses, reverse=True) and len(losses) == 20) or found["scores"]["accuracy"] > 0.9
    for row in found["errors"]:
        text, topic, _ = test_rows[row["row"] - 2]  # the header is row 1
        assert (row["text"], row["label"]) == (text, topic) and row["predicted"] != topic
        assert row["loss"] == pytest.approx(-math.log(row["probability_of_label"]), rel=1e-4)


def test_the_columns_of_the_run_win_and_others_are_found_or_named(root, topics, found, test_rows):
    swapped = [("nothing", "sport", text, topic) for text, topic, _ in test_rows]
    decoys = write(root / "decoys.csv", ("text", "label", "body", "topic"), swapped)
    assert evaluate_run(topics, decoys)["scores"] == found["scores"]
    named = write(root / "named.csv", ("review", "kind"), ((text, topic) for text, topic, _ in test_rows))
    other = evaluate_run(topics, named)
    assert other["columns"] == {"text": "review", "label": "kind"} and other["scores"] == found["scores"]
    assert any("review" in note for note in other["notes"])
    settings = {"text_column": "text", "label_column": "topic"}
    assert evaluate_run(topics, decoys, settings=settings)["scores"]["accuracy"] < found["scores"]["accuracy"]


def test_the_encoding_of_the_run_is_tried_after_utf8(root, topics, tmp_path):
    folder = RunFolder(shutil.copytree(topics, tmp_path / "run"))
    folder.config.write_text(folder.config.read_text().replace("encoding: null", "encoding: shift_jis"))
    for encoding in ("utf-8", "shift_jis"):
        path = tmp_path / f"{encoding}.csv"
        path.write_text("body,topic\n玉ねぎ onion,cooking\n", encoding=encoding)
        table, columns = open_for_run(folder, load_trained(folder.directory).config, path)
        assert [values[columns.text] for _, values in table.rows()] == ["玉ねぎ onion"]


def test_what_cannot_be_judged_is_left_out_and_what_was_never_seen_is_an_error(root, topics):
    rows = [
        ("onion garlic", "cooking"),
        ("  ", "sport"),
        ("goal match", ""),
        ("rain", "weather"),
        ("team", "sport"),
    ]
    found = evaluate_run(topics, write(root / "odd.csv", ("body", "topic"), rows))
    assert found["num_rows"] == 3 and found["unknown_labels"] == {"weather": 1}
    assert found["scores"]["accuracy"] <= 2 / 3
    notes = " ".join(found["notes"])
    assert "1 blank texts left out, the first: row 3" in notes and "row 4" in notes and "'weather'" in notes
    assert math.isfinite(found["scores"]["loss"])


@pytest.mark.parametrize(
    ("header", "rows", "says"),
    [
        (("body", "topic"), [("onion", "red"), ("goal", "blue")], "none of its labels ('red', 'blue' …)"),
        (("body", "topic"), [("", "sport")], "no row has a body and a topic"),
        (("body", "topic"), [("onion", "sport", "more")], "row 2 has 3 fields"),
        (("body",), [("onion",)], "column"),
    ],
)
def test_a_table_that_says_nothing_is_refused_in_one_line(root, topics, tmp_path, capsys, header, rows, says):
    path = write(tmp_path / "bad.csv", header, rows)
    assert main(["evaluate", str(topics), "--data", str(path), "--out", str(tmp_path / "page.html")]) == 2
    out, error = capsys.readouterr()
    assert says in error and error.count("\n") == 1 and str(path) in error and out == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "add --data"),
        (["--data", "test.csv", "--slice", "colour"], "there must be one column 'colour'"),
        (["--data", "test.csv", "--set", "max_epochs=3"], "only text_column"),
        (["--data", "test.csv", "--set", "text_column=x"], "text_column=x"),
        (["--data", "none.csv"], "none.csv"),
    ],
)
def test_a_wrong_call_is_one_line(root, topics, found, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(root)
    assert main(["evaluate", str(topics), *arguments]) == 2
    out, error = capsys.readouterr()
    assert says in error and error.count("\n") == 1 and out == ""


def test_the_command_prints_tables_or_json_and_writes_a_page(root, topics, found, capsys, tmp_path):
    arguments = ["evaluate", str(topics), "--data", str(root / "test.csv"), "--slice", "words"]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found))
    assert main([*arguments, "--out", str(tmp_path / "page.html")]) == 0
    text = capsys.readouterr().out
    for part in (
        "95 % interval",
        "expected calibration error",
        "worst labels",
        "by words",
        "costliest errors",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) < 200
    page = (tmp_path / "page.html").read_text()
    assert all(topic in page for topic in TOPICS) and found["errors"][0]["text"] in page
    assert not re.findall(r'(?:src|href)="[^#"]', page) and "<script" not in page


def test_last_and_best_weights_can_be_chosen(root, topics):
    steps = {
        weights: evaluate_run(topics, root / "test.csv", weights=weights)["step"]
        for weights in ("best", "last")
    }
    assert steps["last"] == 25 >= steps["best"]
    with pytest.raises(UserError, match="weights must be one of best, last"):
        evaluate_run(topics, root / "test.csv", weights="first")


def test_what_a_user_named_is_escaped(found):
    evil = "<script>alert(1)</script>"
    errors = [found["errors"][0] | {"text": evil, "label": evil}]
    assert "<script" not in evaluation_html(found | {"errors": errors, "run": evil, "notes": [evil]})


def test_a_table_that_was_trained_on_is_called_so(root, topics, found):
    assert "trained on this very table" in evaluate_run(topics, root / "train.csv")["notes"][0]
    assert not any("this very table" in note for note in found["notes"])


def test_several_labels(root):
    rng = random.Random(0)
    rows = [{"text": " ".join(TOPICS[t].split()[0] for t in ts), "label": ts}
            for ts in (rng.sample([*TOPICS], rng.randint(1, 3)) for _ in range(120))]  # fmt: skip
    data = write_lines(root / "several.jsonl", rows)
    run_training(TrainConfig(data=str(data), task="multi-label", **SMALL), root / "several", progress=False)
    found = evaluate_run(root / "several", data)
    answers = [*Predictor.load(root / "several").answers(row["text"] for row in rows)]
    is_exact = [{*answer.labels} == {*row["label"]} for answer, row in zip(answers, rows, strict=True)]
    assert found["scores"]["accuracy"] == pytest.approx(np.mean(is_exact))
    hits = sum(len({*a.labels} & {*r["label"]}) for a, r in zip(answers, rows, strict=True))
    size = sum(len(a.labels) + len(r["label"]) for a, r in zip(answers, rows, strict=True))
    assert found["scores"]["micro_f1"] == pytest.approx(2 * hits / size)
    assert sum(row["num_items"] for row in found["calibration"]["bins"]) == 360
    for row in found["errors"]:
        assert {*row["label"]} != {*row["predicted"]} and rows[row["row"] - 1]["text"] == row["text"]
    assert "micro F1" in evaluation_text(found) and "micro F1" in evaluation_html(found)


def test_numbers(root):
    rows = [(text, 1000.0 + 10 * n) for text, _, n in made(120, 2)]
    data = write(root / "numbers.csv", ("text", "label"), rows)
    run_training(TrainConfig(data=str(data), task="regression", **SMALL), root / "numbers", progress=False)
    found = evaluate_run(root / "numbers", data)
    said = np.array(
        [value for value, _ in Predictor.load(root / "numbers").predict(text for text, _ in rows)]
    )
    truth = np.array([number for _, number in rows])
    scores = found["scores"]
    assert scores["mae"] == pytest.approx(np.abs(said - truth).mean(), rel=1e-5)
    spread = ((truth - truth.mean()) ** 2).sum()
    assert scores["r2"] == pytest.approx(1 - ((said - truth) ** 2).sum() / spread, abs=1e-6)
    worst = np.abs(said - truth).max()
    assert found["errors"][0]["absolute_error"] == pytest.approx(worst, rel=1e-5)
    assert [sum(row["num_items"] for row in part) for part in found["slices"].values()] == [120]
    assert "mean absolute error" in evaluation_text(found) and "R²" in evaluation_html(found)


def test_words(root):
    rng = random.Random(0)
    kinds = {word: topic for topic, words in TOPICS.items() for word in words.split()}
    rows = [{"text": words, "label": [kinds[word] for word in words]}
            for words in (rng.choices([*kinds], k=rng.randint(1, 30)) for _ in range(60))]  # fmt: skip
    data = write_lines(root / "words.jsonl", rows)
    config = TrainConfig(data=str(data), task="token-classification", **SMALL | {"max_length": 16})
    run_training(config, root / "words", progress=False)
    found = evaluate_run(root / "words", data)
    answers = [*Predictor.load(root / "words").answers(row["text"] for row in rows)]
    pairs = [(said, right) for answer, row in zip(answers, rows, strict=True)
             for said, right in zip(answer.label, row["label"], strict=True) if said is not None]  # fmt: skip
    assert found["scores"]["num_items"] == len(pairs)
    assert found["scores"]["accuracy"] == pytest.approx(np.mean([said == right for said, right in pairs]))
    assert found["num_cut"] == sum(len(row["text"]) for row in rows) - len(pairs) > 0
    for row in found["errors"]:
        assert f"[{row['word']}]" in row["around"] and kinds[row["word"]] == row["label"] != row["predicted"]
    assert "costliest errors" in evaluation_text(found) or not found["errors"]
    evaluation_html(found)


def test_next_tokens(root, topics):
    data = write(root / "texts.csv", ("text",), ([text] for text, _, _ in made(60, 3)))
    config = TrainConfig(data=str(data), task="language-modelling", **SMALL)
    record = run_training(config, root / "language", progress=False)
    found = evaluate_run(root / "language", data)
    assert found["scores"]["perplexity"] == pytest.approx(math.exp(found["scores"]["loss"]))
    assert found["scores"]["loss"] == pytest.approx(record["validation"]["loss"], rel=0.2)
    predictor = Predictor.load(root / "language")
    text = found["errors"][0]["text"]
    ids = predictor.tokenizer.encode(text).ids
    losses = []
    for i in range(1, len(ids)):
        (answer,) = predictor.read([text], lambda logits, mask, _, i=i: [logits[0, i - 1].softmax(-1)])
        losses.append(-math.log(float(answer[2][ids[i]])))
    assert found["errors"][0]["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert "costliest texts" in evaluation_text(found) and "perplexity" in evaluation_html(found)


PAIRS = st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=200)


@given(PAIRS)
def test_the_calibration_error_is_that_of_the_paper(pairs):
    found = calibration(np.array([p for p, _ in pairs]), np.array([t for _, t in pairs]))
    expected = 0.0
    for k in range(NUM_BINS):  # (k / M, (k + 1) / M], the first with its lower edge
        inside = [(p, t) for p, t in pairs if k < p * NUM_BINS <= k + 1 or (k == p == 0)]
        expected += abs(sum(t for _, t in inside) - sum(p for p, _ in inside)) / len(pairs)
    assert found["expected_calibration_error"] == pytest.approx(expected, abs=1e-9)
    assert sum(row["num_items"] for row in found["bins"]) == len(pairs)
    assert all(row["low"] - 1e-9 <= row["probability"] <= row["high"] + 1e-9 for row in found["bins"])


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_the_share_and_its_edges_are_wilsons(pair):
    hits, number = pair
    low, high = interval(hits, number)
    share = hits / number
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1
    for edge in (low, high):  # where the score test is just significant
        if 0 < edge < 1:
            assert abs(share - edge) == pytest.approx(
                1.959964 * math.sqrt(edge * (1 - edge) / number), rel=1e-5
            )
