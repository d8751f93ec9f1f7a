"""The ladder by counts: what each change changes, and that all ways to train get the same texts."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from course_lib.data.store import TokenStore
from course_lib.data.texts import Texts
from course_lib.data.tokenizer import train_tokenizer
from course_lib.measuring.counters import count_events
from course_lib.models.transformers import TextClassifier
from course_lib.runs.config import TrainConfig
from course_lib.training.precision import resolve_precision
from course_lib.tuning.ladder import (
    BUCKETS,
    CHANGES,
    COMPILED,
    DYNAMIC,
    FUSED,
    LEAN,
    LOW,
    NAIVE,
    STORED,
    TOGETHER,
    climb,
    training,
)

SIZE, STEPS = 8, 6
CONFIG = TrainConfig(
    data="docstrings", d_model=16, num_layers=1, micro_batch_size=SIZE, dropout=0.0, precision="bf16-mixed"
)
WAYS = [frozenset(CHANGES[:number]) for number in range(len(CHANGES))]  # all but the compiled one


class Counting:
    """A tokenizer that counts."""

    def __init__(self, tokenizer):
        self.tokenizer, self.num_encoded, self.decode = tokenizer, 0, tokenizer.decode

    def encode(self, text):
        self.num_encoded += 1
        return self.tokenizer.encode(text)


class Store(TokenStore):
    def load_tokenizer(self):
        self.counting = Counting(super().load_tokenizer())
        return self.counting


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(tmp_path_factory.mktemp("data")))
        yield _store()


def _store():
    rng = np.random.default_rng(0)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    texts = [f"{' '.join(rng.choice(words, size=rng.integers(1, 40)))} {i}" for i in range(90)]
    table = Texts(texts=texts, labels=np.arange(90) % 3, label_names=("a", "b", "c"))
    tokenizer = train_tokenizer(texts, vocab_size=300)
    built = TokenStore.build(table, tokenizer, max_length=64, progress=False)
    return Store(built.directory)


class Seen:
    """What passed through the model and the optimizer."""

    def __init__(self):
        self.texts, self.widths, self.num_padded, self.dtypes, self.is_fused = [], [], [], set(), set()
        self.weights = None

    def forward(self, module, inputs, output):
        if isinstance(module, torch.nn.Linear):
            self.dtypes.add(output.dtype)
        if isinstance(module, TextClassifier):
            input_ids, mask = inputs
            self.texts.append(
                sorted(tuple(row[real].tolist()) for row, real in zip(input_ids, mask, strict=True))
            )
            self.widths.append(input_ids.shape[1])
            self.num_padded.append(int(mask.logical_not().sum()))

    def step(self, optimizer, args, kwargs):
        self.is_fused.add(bool(optimizer.defaults["fused"]))
        self.weights = [p.detach().clone() for group in optimizer.param_groups for p in group["params"]]


def watch(run, seed=3, num_steps=STEPS):
    seen = Seen()
    hooks = [register_module_forward_hook(seen.forward), register_optimizer_step_post_hook(seen.step)]
    try:
        assert run(seed, num_steps) > 0
    finally:
        for hook in hooks:
            hook.remove()
    return seen


@pytest.fixture(scope="module")
def seen(store):
    precision = resolve_precision("bf16-mixed", torch.device("cpu"))
    return [watch(training(CONFIG, store, precision, way)) for way in WAYS]


def test_every_way_trains_on_the_same_texts_in_as_many_steps(seen):
    counts = [Counter(text for batch in ways.texts[1:] for text in batch) for ways in seen]
    assert all(count == counts[0] for count in counts)  # those tokenised again have the same ids, too
    assert [len(ways.texts) for ways in seen] == [STEPS + 1] * len(WAYS)  # one of them untimed
    assert sum(counts[0].values()) == STEPS * SIZE


def test_each_change_changes_what_it_says(seen, store):
    naive, stored, dynamic, buckets, lean, fused, low = seen
    widest = int(store.lengths.max())
    assert set(naive.widths) == set(stored.widths) == {widest}
    assert all(w == max(map(len, texts)) for w, texts in zip(dynamic.widths, dynamic.texts, strict=True))
    assert sum(buckets.num_padded[1:]) < 0.5 * sum(dynamic.num_padded[1:]) < 0.5 * sum(stored.num_padded[1:])
    assert lean.num_padded == buckets.num_padded
    assert lean.is_fused == {False} and fused.is_fused == {True}
    assert fused.dtypes == {torch.float32} and torch.bfloat16 in low.dtypes
    # The same steps from the same weights: storing tokens changes nothing at all, the lean step only rounding,
    # which Adam blows up where the gradient is nothing but rounding (biases of keys).
    assert all(torch.equal(a, b) for a, b in zip(naive.weights, stored.weights, strict=True))
    far = [(a - b).abs() > 1e-5 for a, b in zip(buckets.weights, lean.weights, strict=True)]
    assert sum(int(apart.sum()) for apart in far) < 0.02 * sum(apart.numel() for apart in far)


def test_tokenising_and_reading_values_are_counted(store):
    precision = resolve_precision("32-true", torch.device("cpu"))
    encoded, syncs = [], []
    for way in (WAYS[0], WAYS[1], WAYS[3], WAYS[4]):
        run = training(CONFIG, store, precision, way)
        with count_events() as counts:
            run(0, STEPS)
        encoded.append(store.counting.num_encoded)
        syncs.append(counts.num_syncs)
    assert encoded == [SIZE * (STEPS + 1), 0, 0, 0]
    assert min(syncs[:3]) >= STEPS + 1
    assert syncs[3] == 0


def test_a_segment_leaves_no_trace_in_the_next(store):
    run = training(CONFIG, store, resolve_precision("32-true", torch.device("cpu")), WAYS[5])
    first = watch(run, seed=1)
    run(2, 3)
    again = watch(run, seed=1)
    assert first.texts == again.texts
    assert all(torch.equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))


def test_a_table_smaller_than_a_segment_is_gone_through_again(store):
    small = Store(store.directory, np.arange(20))
    seen = watch(
        training(CONFIG, small, resolve_precision("32-true", torch.device("cpu")), WAYS[3]), num_steps=9
    )
    counts = Counter(text for batch in seen.texts for text in batch)
    assert len(counts) == 20 and set(counts.values()) == {4}


@pytest.mark.further
def test_climb_measures_each_change_against_the_way_before(store):
    torch.manual_seed(5)
    rows = climb(CONFIG, store, blocks=2, min_seconds=0.0, progress=False)
    assert [row["change"] for row in rows] == [
        NAIVE,
        STORED,
        DYNAMIC,
        BUCKETS,
        LEAN,
        FUSED,
        LOW,
        COMPILED,
        TOGETHER,
    ]
    assert "compile=on" in rows[-2]["obstacle"]
    measured = [row for row in rows if "obstacle" not in row]
    assert all(row["samples_per_sec"] > 0 for row in measured)
    product = 1.0
    for row in measured[1:-1]:
        assert row["is_kept"] == (row["speedup"]["estimate"] > 1 or row["change"] != LOW)
        product *= row["speedup"]["estimate"] if row["is_kept"] else 1.0
        assert row["over_naive"] == pytest.approx(product)
        assert len(row["speedup"]["blocks"]) == 2
    assert measured[-1]["over_naive"] == measured[-1]["speedup"]["estimate"]
    full = climb(TrainConfig(**{**CONFIG.to_dict(), "precision": "32-true"}), store, blocks=1, min_seconds=0.0,
                 progress=False)  # fmt: skip
    assert "32-true: asked for" in {row["change"]: row for row in full}[LOW]["obstacle"]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.labels = Counter(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        values = dict(attributes)
        self.links += [values[name] for name in ("src", "href") if name in values]
        self.labels += [values["aria-label"]] if "aria-label" in values else []


@pytest.fixture
def command(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{'word ' * int(rng.integers(1, 30))}number {i},{'ab'[i % 2]}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]))

    def go(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "course_lib", "bench", "--data", "t.csv", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            timeout=300,
            # Nor is there a C++ compiler: compiling is named as not measured, not timed against itself.
            env={
                **os.environ,
                "COURSE_LIB_CACHE": str(tmp_path / "cache"),
                "OMP_NUM_THREADS": "1",
                "CXX": "/nowhere/g++",
                "PATH": "/nowhere",
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            },
        )

    return go


@pytest.mark.exhaustive
def test_bench_writes_numbers_with_their_provenance_and_a_page(command, tmp_path):
    settings = ["d_model=16", "num_layers=1", "micro_batch_size=8", "vocab_size=300", "max_length=32"]
    settings.append("compile=on")
    options = [option for setting in settings for option in ("--set", setting)]
    done = command("--out", "b", "--blocks", "1", "--json", *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)  # JSON alone on stdout, the bar on stderr
    assert "block" in done.stderr
    assert json.loads((tmp_path / "b" / "bench.json").read_text()) == result
    assert result["hardware"]["num_threads"] == 1 and result["environment"]["packages"]["torch"]
    assert result["config"]["d_model"] == 16 and result["data"]["num_train"] == 72
    assert math.isfinite(result["rows"][-1]["over_naive"])
    assert "C++ compiler" in {row["change"]: row.get("obstacle") for row in result["rows"]}[COMPILED]
    text = (tmp_path / "b" / "bench.html").read_text()
    page = Page(text)
    measured = [row for row in result["rows"] if "obstacle" not in row]
    assert page.tags["svg"] == 1 and page.tags["rect"] == len(measured) and not page.links
    assert all(row["change"] in page.labels[0] for row in measured)
    assert all(row["change"] in text for row in result["rows"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--blocks", "0"], "--blocks must be at least 1"),
        (["--set", "task=language-modelling"], "leave out task"),
        (["--set", "micro_batch_sice=3"], "micro_batch_size"),
    ],
)
def test_what_bench_cannot_measure_is_said_in_one_line(command, arguments, says, tmp_path):
    done = command(*arguments)
    assert done.returncode == 2 and says in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout
    assert not (tmp_path / "runs").exists()
