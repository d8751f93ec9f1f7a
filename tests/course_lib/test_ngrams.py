"""Bags of n-grams: which n-grams a text has, the tokenizer of them, the models, and runs with them."""

import itertools
import json
import random
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import Predictor, TrainConfig, UserError, run_training
from course_lib.data import load_tokenizer, save_tokenizer, train_ngrams, train_tokenizer
from course_lib.data.ngrams import NUM_BUCKETS, NgramTokenizer, text_buckets
from course_lib.models import JoinedClassifier, ModelConfig, NgramClassifier, set_ngram_weights
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import plan_training
from course_lib.training import Callback, load_checkpoint, make_optimizer

TOPICS = {
    "cooking": ["onion", "garlic", "oven", "bake", "flour", "butter", "salt", "pepper", "roast", "sauce"],
    "sport": ["team", "goal", "match", "coach", "player", "season", "score", "league", "final", "referee"],
    "travel": ["flight", "hotel", "train", "beach", "museum", "passport", "luggage", "island", "ticket"],
}
COMMON = ["the", "a", "of", "and", "we", "to", "it", "was", "in", "on", "with", "for", "this", "that", "my"]
TEXTS = st.lists(st.text(st.sampled_from("ab cé我们爱\U0001f600.!\n"), max_size=12), min_size=1, max_size=6)


def naive_ngrams(text):
    """As sets would have it: words, pairs of words, runs of 2 to 5 characters of a word with a space around."""
    words = re.findall(r"\w+|[^\w\s]+", text.casefold())
    runs = [f" {word} "[i : i + n] for word in words for n in range(2, 6) for i in range(len(word) + 3 - n)]
    return words, [*itertools.pairwise(words)], runs


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_ngrams_are_those_of_the_definition_and_do_not_hang_on_neighbours(texts):
    row, bucket = text_buckets(texts)
    is_word = bucket < NUM_BUCKETS // 2
    for i, text in enumerate(texts):
        words, pairs, runs = naive_ngrams(text)
        mine = row == i
        assert (mine & is_word).sum() == len(words) + len(pairs)
        assert (mine & ~is_word).sum() == len(runs)
        # Two of few thousand n-grams of one text fall together once in a thousand texts: that is no error.
        assert len({*bucket[mine & is_word]}) <= len({*words}) + len({*pairs})
        alone = text_buckets([text])[1]
        assert sorted(alone) == sorted(bucket[mine])


def test_what_is_equal_has_one_bucket_and_what_differs_another():
    def buckets(text):
        return {*text_buckets([text])[1].tolist()}

    assert buckets("Hello World") == buckets("hello\n  world")
    assert buckets("hello world") != buckets("world hello")  # pairs have an order
    assert buckets("我们爱") & buckets("他们爱")  # no spaces: runs of characters are shared
    assert not buckets("aaa") & buckets("bbb")


@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_a_tokenizer_is_saved_and_read_and_names_each_ngram_of_training_once(texts):
    tokenizer = train_ngrams([*texts, *texts])
    again = NgramTokenizer.from_str(tokenizer.to_str())
    encodings = again.encode_batch(texts)
    assert [e.ids for e in encodings] == [e.ids for e in tokenizer.encode_batch(texts)]
    for text, encoding in zip(texts, encodings, strict=True):
        assert encoding.ids[0] == 0  # no text is empty
        assert encoding.ids == sorted({*encoding.ids})
        assert len(encoding.ids) - 1 == len({*text_buckets([text])[1].tolist()})
    assert again.get_vocab_size() == 1 + max(again.get_vocab().values())
    assert [e.ids for e in again.encode_batch(["zzzz qqqq"])] == [[0]]  # nothing that was seen


def test_a_tokenizer_file_keeps_its_kind_and_tokens_stand_before_ngrams(tmp_path):
    texts = ["the cat sat", "the dog sat", "the cat ran"] * 5
    inner = train_tokenizer(texts, vocab_size=300)
    joined = train_ngrams(texts, inner=inner, offset=300)
    save_tokenizer(joined, tmp_path / "tokenizer.json")
    read = load_tokenizer(tmp_path / "tokenizer.json")
    read.enable_truncation(2)
    (ids,) = (encoding.ids for encoding in read.encode_batch(["the cat sat"]))
    assert ids[:2] == inner.encode("the cat sat").ids[:2]
    assert ids[2] == 300 and min(ids[2:]) == 300  # cut tokens, whole n-grams
    (tmp_path / "tokenizer.json").write_text(
        read.to_str().replace('"characters": [2, 5]', '"characters": [2, 6]')
    )
    with pytest.raises(UserError, match="another version"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_a_bag_is_the_weighted_mean_of_definition():
    torch.manual_seed(0)
    model = NgramClassifier("classification", 6, 2).eval()
    set_ngram_weights(model, torch.tensor([9, 9, 1, 4, 1, 9]), 9, num_words=2)
    torch.nn.init.normal_(model.ngrams.table.weight)
    ids = torch.tensor([[0, 1, 2, 3, 5], [0, 4, 0, 0, 0]])
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    idf, rows = torch.log(10 / (1 + torch.tensor([9.0, 9, 1, 4, 1, 9]))) + 1, model.ngrams.table.weight
    words, characters = idf[[1, 2]] / idf[[1, 2]].norm(), idf[[3, 5]] / idf[[3, 5]].norm()
    expected = words @ rows[[1, 2]] + characters @ rows[[3, 5]]
    torch.testing.assert_close(model(ids, mask), torch.stack([expected, rows[4]]))
    junk = ids.where(mask, torch.tensor(3))  # what stands under the padding is not read
    torch.testing.assert_close(model(junk, mask), model(ids, mask))


def test_joined_is_the_sum_of_both():
    torch.manual_seed(0)
    model = JoinedClassifier(ModelConfig(vocab_size=20, num_classes=3, max_length=8, d_model=16), 5).eval()
    tokens, ngrams = torch.tensor([[4, 5, 6]]), torch.tensor([[20, 21, 24]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    deep = model(tokens, mask)
    torch.nn.init.normal_(model.ngrams.table.weight)
    both = model(torch.cat([tokens, ngrams], dim=1), torch.ones(1, 6, dtype=torch.bool))
    torch.testing.assert_close(both, deep + model.ngrams(ngrams - 20, mask))


def test_the_bag_learns_by_sgd_and_the_blocks_by_what_was_asked_for():
    config = ModelConfig(vocab_size=20, num_classes=3, max_length=8, d_model=16)
    model = JoinedClassifier(config, 5)
    optimizer = make_optimizer(model, "adamw", learning_rate=1e-3, embedding_lr_ratio=20.0)
    (bag,) = (group for group in optimizer.param_groups if group["name"] == "by_sgd")
    assert {id(p) for p in bag["params"]} == {id(p) for p in model.ngrams.parameters()}
    assert (bag["lr"], bag["weight_decay"], bag["momentum"]) == (pytest.approx(20.0), 0.0, 0.9)
    alone = make_optimizer(NgramClassifier("classification", 5, 3), "sgd", learning_rate=1e-3)
    assert isinstance(alone, torch.optim.SGD)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng, rows = random.Random(0), ["text,label"]
    for _ in range(300):
        label = rng.choice([*TOPICS])
        words = rng.choices(COMMON, k=rng.randint(2, 12)) + rng.choices(TOPICS[label], k=2)
        rng.shuffle(words)
        rows.append(f"{' '.join(words)},{label}")
    path = tmp_path_factory.mktemp("data") / "texts.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


SMALL = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "micro_batch_size": 32, "precision": "32-true"}


@pytest.mark.parametrize("model", ["ngrams", "joined"])
def test_a_run_learns_is_used_and_resumes_bit_for_bit(model, table, tmp_path):
    sizes = SMALL if model == "joined" else {"micro_batch_size": 32}
    config = TrainConfig(
        data=str(table), model=model, max_steps=25, checkpoint_every_steps=10, log_every_steps=5, **sizes
    )
    record = run_training(config, tmp_path / "whole", progress=False)
    assert record["validation"]["accuracy"] > 0.9
    assert record["config"]["model"] == model
    assert record["resolved"]["model"] == f"{model}: asked for"
    predictor = Predictor.load(tmp_path / "whole")
    said = predictor.predict(["garlic and butter in the oven", "the referee and the coach", ""])
    assert [label for label, _ in said[:2]] == ["cooking", "sport"]

    class Interrupt(Callback):
        def on_step(self, state):
            if state.step == 14:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(config, tmp_path / "cut", progress=False, callbacks=[Interrupt()])
    resumed = run_training(config, tmp_path / "cut", resume=True, progress=False)
    assert resumed["weights_sha256"] == record["weights_sha256"]
    assert resumed["best_weights_sha256"] == record["best_weights_sha256"]


def test_auto_takes_ngrams_where_there_is_no_time_and_says_so(table, tmp_path):
    config = TrainConfig(data=str(table), max_epochs=2, time_limit=1e-3)
    assert config.model == "auto"
    plan = plan_training(config, tmp_path / "plan")
    assert plan["model"].startswith("auto: ngrams, untried") and "time_limit of" in plan["model"]
    record = run_training(config, tmp_path / "run", progress=False)
    assert record["config"]["model"] == "ngrams" == RunFolder(tmp_path / "run").read_config()["model"]
    assert record["choice"][0]["model"] == "ngrams"
    assert all("value" not in trial for trial in record["choice"])
    again = run_training(config, tmp_path / "run", resume=True, progress=False)  # auto is what was chosen
    assert again["weights_sha256"] == record["weights_sha256"]


def test_auto_compares_whole_runs_on_the_validation_part(tmp_path):
    """Where the order of words decides, and is out of the reach of pairs, n-grams lose."""
    rng, rows = random.Random(0), ["text,label"]
    for _ in range(400):
        first = rng.random() < 0.5
        filling = [rng.choice(COMMON) for _ in range(6)]
        words = ["xx", *filling, "yy"] if first else ["yy", *filling, "xx"]
        rows.append(f"{' '.join(words)} and,{'up' if first else 'down'}")
        rows[-1] = rows[-1].replace("xx", "the xx the").replace("yy", "the yy the")
    path = tmp_path / "order.csv"
    path.write_text("\n".join(["text,label", *(f"the {row}" for row in rows[1:])]) + "\n")
    config = TrainConfig(data=str(path), time_limit=600, max_steps=60, micro_batch_size=32)
    record = run_training(config, tmp_path / "run", progress=False)
    values = {trial["model"]: trial["value"] for trial in record["choice"]}
    assert {*values} == {"ngrams", "joined", "transformer"}
    best = max(values, key=lambda model: values[model])
    assert record["config"]["model"] == best or values[record["config"]["model"]] == values[best]
    assert record["resolved"]["model"].startswith(
        f"auto: {record['config']['model']}, best validation macro_f1"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 32},
        {"max_length": 64},
        {"optimizer": "muon"},
        {"task": "language-modelling"},
        {"layer_decay": 0.9},
    ],
)
def test_a_key_of_transformers_means_one(changes):
    config = TrainConfig(data="x.csv", **changes)
    assert (config.model, config.micro_batch_size) == ("transformer", 32)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": "ngrams", "task": "regression"}, "labels of whole texts, not task=regression"),
        ({"model": "ngrams", "lora_rank": 4}, "lora_rank belongs to a transformer"),
        ({"model": "joined", "hf_model": "base"}, "hf_model belongs to a transformer"),
        ({"model": "ngrams", "sharding": "fsdp"}, "not split over processes"),
        ({"model": "ngrams", "optimizer": "adamw"}, "learns by sgd"),
        ({"model": "bert"}, "model must be one of auto, transformer, ngrams, joined"),
        ({"time_limit": 0}, "time_limit must be above 0"),
    ],
)
def test_what_does_not_fit_is_refused(changes, says):
    with pytest.raises(UserError, match=says):
        TrainConfig(data="x.csv", **changes)


def test_the_config_of_a_run_from_before_means_a_transformer(table, tmp_path):
    config = TrainConfig(data=str(table), model="transformer", max_steps=2, **SMALL)
    record = run_training(config, tmp_path / "run", progress=False)
    folder = RunFolder(tmp_path / "run")
    text = folder.config.read_text()
    for key in ("model", "time_limit"):
        text = re.sub(rf"^{key}: .*\n", "", text, flags=re.M)
    folder.config.write_text(text)
    checkpoint = load_checkpoint(folder.last)
    for values in (checkpoint["config"], checkpoint["extra"]["settled"]):
        del values["model"], values["time_limit"]
    torch.save(checkpoint, folder.last)
    assert folder.read_config()["model"] == "transformer"
    assert Predictor.load(tmp_path / "run").predict(["the oven"])
    folder.write_record({**folder.read_record(), "status": "interrupted"})
    resumed = run_training(
        TrainConfig.from_dict(folder.read_config()), tmp_path / "run", resume=True, progress=False
    )
    assert resumed["weights_sha256"] == record["weights_sha256"]


def test_the_record_and_the_report_have_a_linear_baseline(table, tmp_path):
    pytest.importorskip("sklearn")
    record = run_training(TrainConfig(data=str(table), max_steps=3), tmp_path / "run", progress=False)
    baseline = record["baseline"]
    assert 0.5 < baseline["accuracy"] <= 1 and 0 < baseline["macro_f1"] <= 1 and baseline["cpu_seconds"] > 0
    assert "LinearSVC" in (tmp_path / "run" / "report.html").read_text()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["baseline"] == baseline


def test_without_scikit_learn_the_row_says_so(table, tmp_path, monkeypatch):
    import sys

    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    record = run_training(TrainConfig(data=str(table), max_steps=3), tmp_path / "run", progress=False)
    assert "baseline" in record["baseline"]["reason"] and "accuracy" not in record["baseline"]
    assert "scikit-learn" in (tmp_path / "run" / "report.html").read_text()


def test_a_label_alone_and_texts_without_words_leave_a_reason(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("text,label\n" + "".join(f"{'!?.' * (i + 1)},{'ab'[i % 2]}\n" for i in range(20)))
    record = run_training(TrainConfig(data=str(path), max_steps=2), tmp_path / "run", progress=False)
    assert np.isfinite(record["validation"]["loss"])
    assert record["baseline"]["reason"]
