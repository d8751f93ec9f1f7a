"""The token store: what goes in comes out, from disk, whole or not at all."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import Texts, TokenStore, collate, docstring_store, train_tokenizer

WORDS = ["alpha beta", "gamma [PAD] delta", "épsilon", "zeta " * 50, "eta"]


@pytest.fixture(scope="module")
def texts():
    return Texts(texts=WORDS, labels=np.array([0, 1, 0, 1, 1]), label_names=("x", "y"))


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(WORDS, vocab_size=280)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    if "docstring" not in request.node.name:
        monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))


@pytest.fixture
def store(texts, tokenizer):
    return TokenStore.build(texts, tokenizer, max_length=16, progress=False)


def test_samples_are_the_encoded_texts_cut_to_length(store, tokenizer):
    assert len(store) == 5
    for i, text in enumerate(WORDS):
        ids, label = store[i]
        assert ids.dtype == np.int64 and ids.ndim == 1 and type(label) is int
        assert ids.tolist() == tokenizer.encode(text).ids[:16]
        assert label == [0, 1, 0, 1, 1][i]
        assert store.lengths[i] == len(ids)
    assert store.lengths.dtype == store.labels.dtype == np.int64
    assert (store.label_names, store.max_length) == (("x", "y"), 16)
    assert store.num_truncated == sum(len(tokenizer.encode(text).ids) > 16 for text in WORDS) > 0
    assert store.vocab_size == tokenizer.get_vocab_size()
    assert store.load_tokenizer().to_str() == tokenizer.to_str()
    assert len(list(store)) == 5 and store[-1][0].tolist() == store[4][0].tolist()
    with pytest.raises(IndexError):
        store[5]


def test_the_ids_are_mapped_not_read_and_a_sample_is_a_copy(store):
    assert isinstance(store._ids.base, np.memmap) and store._ids.dtype == np.uint16
    before = store[0][0].copy()
    store[0][0][:] = 9
    assert store[0][0].tolist() == before.tolist()
    with pytest.raises(ValueError, match="read-only"):
        store._ids[0] = 1


def test_tokens_of_words_take_the_label_of_their_word(tokenizer, tmp_path):
    words = [["alpha", "beta", "épsilon!"], ["x"], ["gamma", "[PAD]", "zeta" * 9]]
    labels = [[3, 1, 2], [0], [1, 2, 3]]
    zeros = np.zeros(3, dtype=np.int64)
    texts = Texts(words, zeros, ("a", "b", "c", "d"), word_labels=labels)
    store = TokenStore.build(texts, tokenizer, max_length=16, task="token-classification", progress=False)
    for i, text in enumerate(words):
        ids, found = store[i]
        assert (ids.dtype, found.dtype) == (np.int64, np.int64) and ids.shape == found.shape
        encoding = tokenizer.encode(text, is_pretokenized=True)
        assert ids.tolist() == encoding.ids[:16]
        assert found[0] == -100, "[CLS] is no word"
        firsts = [encoding.word_ids.index(number) for number in range(len(text))]
        wanted = {at: label for at, label in zip(firsts, labels[i], strict=True) if at < 16}
        assert {at: label for at, label in enumerate(found.tolist()) if label != -100} == wanted
    assert store.label_names == ("a", "b", "c", "d")
    with pytest.raises(UserError, match="only token classification has labels per word"):
        TokenStore.build(texts, tokenizer, max_length=9, progress=False)


def test_language_modelling_asks_for_the_next_id(texts, tokenizer, tmp_path):
    store = TokenStore.build(texts, tokenizer, max_length=16, task="language-modelling", progress=False)
    for i in range(5):
        ids, labels = store[i]
        assert labels.tolist() == [*ids[1:].tolist(), -100]
    assert store.label_names == () and store.labels.tolist() == [0, 1, 0, 1, 1], "labels balance the split"
    with pytest.raises(UserError, match="does not fit"):
        TokenStore.build(texts, tokenizer, max_length=9, task="token-classification", progress=False)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data(), task=st.sampled_from(["classification", "token-classification", "language-modelling"]))
def test_a_batch_is_what_collate_makes_of_the_samples(tokenizer, data, task):
    words = st.lists(st.text("ab é", min_size=1, max_size=9), min_size=1, max_size=12)
    rows = data.draw(st.lists(words, min_size=1, max_size=8))
    tagged = task == "token-classification"
    texts = Texts(
        rows if tagged else [" ".join(row) for row in rows],
        np.arange(len(rows)) % 3,
        ("x", "y", "z"),
        word_labels=[[len(word) % 3 for word in row] for row in rows] if tagged else None,
    )
    store = TokenStore.build(texts, tokenizer, max_length=9, task=task, progress=False)
    indices = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=9))
    pad_to = data.draw(st.sampled_from([None, 9, 12]))
    ours = store.batch(indices, pad_to=pad_to)
    theirs = collate([store[i] for i in indices], pad_id=store.pad_id, pad_to=pad_to)
    assert list(ours) == list(theirs)
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype and torch.equal(ours[name], theirs[name]), name


def test_a_subset_is_a_view_in_the_order_asked(store):
    part = store.subset([3, 0, -1])
    assert [part[i][0].tolist() for i in range(3)] == [store[i][0].tolist() for i in (3, 0, 4)]
    assert part.lengths.tolist() == store.lengths[[3, 0, 4]].tolist()
    assert part.labels.tolist() == [1, 0, 1]
    again = part.subset(np.array([1]))
    assert again[0][0].tolist() == store[0][0].tolist() and len(again) == 1
    assert (
        len({store.fingerprint, part.fingerprint, again.fingerprint, store.subset([0, 3]).fingerprint}) == 4
    )
    assert again.fingerprint == store.subset([0]).fingerprint
    with pytest.raises(IndexError):
        store.subset([5])


def test_pickling_carries_no_tokens(store):
    data = pickle.dumps(store.subset([3, 1]))
    assert len(data) < 1000
    back = pickle.loads(data)
    assert [back[i][0].tolist() for i in range(2)] == [store[3][0].tolist(), store[1][0].tolist()]


def test_a_store_is_found_again_by_what_it_holds(texts, tokenizer):
    first = TokenStore.build(texts, tokenizer, max_length=16, progress=False)
    stamp = (first.directory / "ids.bin").stat().st_mtime_ns
    again = TokenStore.build(texts, tokenizer, max_length=16, progress=False)
    assert again.directory == first.directory and (again.directory / "ids.bin").stat().st_mtime_ns == stamp
    shorter = TokenStore.build(texts, tokenizer, max_length=8, progress=False)
    other_tokenizer = train_tokenizer(WORDS[:2], vocab_size=270)
    other = TokenStore.build(texts, other_tokenizer, max_length=16, progress=False)
    two = Texts(texts=WORDS[:2], labels=np.array([0, 1]), label_names=("x", "y"))
    fewer = TokenStore.build(two, tokenizer, max_length=16, progress=False)
    assert len({s.fingerprint for s in (first, shorter, other, fewer)}) == 4
    assert len({s.directory for s in (first, shorter, other, fewer)}) == 4


@pytest.mark.parametrize("damage", ["ids.bin", "meta.json", "truncate", "other format"])
def test_a_damaged_store_is_built_again(texts, tokenizer, store, damage):
    wanted = [store[i][0].tolist() for i in range(5)]
    if damage == "truncate":
        data = (store.directory / "ids.bin").read_bytes()
        (store.directory / "ids.bin").write_bytes(data[:-4])
    elif damage == "other format":
        meta = json.loads((store.directory / "meta.json").read_text())
        (store.directory / "meta.json").write_text(json.dumps(meta | {"format": -1}))
    else:
        (store.directory / damage).unlink()
    with pytest.raises(UserError, match=r"is not a token store.*rebuild it"):
        TokenStore.load(store.directory)
    again = TokenStore.build(texts, tokenizer, max_length=16, progress=False)
    assert [again[i][0].tolist() for i in range(5)] == wanted


def test_errors_name_the_fix(texts, tokenizer, tmp_path, monkeypatch):
    nothing = Texts(texts=[], labels=np.array([], dtype=np.int64), label_names=("x", "y"))
    with pytest.raises(UserError, match="max_length=0 must be at least 1"):
        TokenStore.build(texts, tokenizer, max_length=0, progress=False)
    with pytest.raises(UserError, match="no texts to tokenise"):
        TokenStore.build(nothing, tokenizer, max_length=4, progress=False)
    with pytest.raises(UserError, match="is not a token store"):
        TokenStore.load(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot make the folder .*COURSE_LIB_CACHE"):
        TokenStore.build(texts, tokenizer, max_length=4, progress=False)


BUILD = """
import sys
import numpy as np
from course_lib.data import Texts, TokenStore, train_tokenizer
words = [f"text number {i} " * 40 for i in range(4000)]
texts = Texts(texts=words, labels=np.arange(4000) % 2, label_names=("x", "y"))
tokenizer = train_tokenizer(words[:200], vocab_size=300)
print("building", flush=True)
print(TokenStore.build(texts, tokenizer, max_length=99, progress=False).fingerprint)
"""


def start(cache):
    environment = os.environ | {"COURSE_LIB_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", BUILD],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_may_build_at_once(tmp_path):
    both = [start(tmp_path), start(tmp_path)]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0][0] == answers[1][0] and answers[0][1] == answers[1][1] == ""
    (only,) = tmp_path.iterdir()
    assert TokenStore.load(only).fingerprint == answers[0][0].split()[1]


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_a_killed_build_leaves_nothing_that_looks_finished(tmp_path, delay):
    process = start(tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.communicate(timeout=60)
    for entry in tmp_path.iterdir():
        if not entry.name.startswith(".building-"):
            assert len(TokenStore.load(entry)) == 4000


def test_the_docstring_store_splits_by_file_and_is_kept():
    train, validation = docstring_store(progress=False)
    assert train.label_names == validation.label_names
    assert 0.08 < len(validation) / (len(train) + len(validation)) < 0.12
    assert train.vocab_size == validation.vocab_size <= 2**13
    assert set(np.unique(validation.labels)) == set(range(len(train.label_names)))
    assert train.lengths.min() >= 2 and train.lengths.max() == 1024
    again, _ = docstring_store(progress=False)
    assert again.directory == train.directory and again.fingerprint == train.fingerprint
    ids, _ = train[0]
    assert ids[0] == 2 and ids.max() < train.vocab_size


def test_the_docstring_store_opens_in_under_a_second():
    docstring_store(progress=False)
    before = time.process_time()
    docstring_store(progress=False)
    assert time.process_time() - before < 1.0
