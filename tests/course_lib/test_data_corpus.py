"""The docstring corpus: real, masked, without repeats, kept whole, and the same on every machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from course_lib.base.errors import UserError
from course_lib.data import corpus, load_docstrings, load_source
from course_lib.data.texts import Texts, normalise
from tools.make_corpus import LABELS

LICENCES = corpus.CORPUS.with_name("corpus_licences.txt")


@pytest.fixture(scope="module")
def texts() -> Texts:
    return load_docstrings()


def test_it_is_large_and_has_many_labels(texts):
    counts = np.bincount(texts.labels, minlength=len(texts.label_names))
    assert len(texts) > 30_000
    assert len(texts.label_names) >= 12 and texts.label_names[:2] == ("stdlib", "torch")
    assert counts.min() >= 400


def test_the_label_cannot_be_read_off_a_name(texts):
    together = "\n\n".join(texts.texts)
    folded = together.casefold()
    for name in texts.label_names:
        assert name not in folded, folded[folded.index(name) - 40 :][:90]
    for name in (
        "hugging face",
        "huggingface",
        "prompt toolkit",
        "prompt-toolkit",
        "jupyter",
        "python",
    ):
        assert name not in folded, folded[folded.index(name) - 40 :][:90]
    paths = (
        r"(?<![\w.])(?:np|plt|nx|nn|os|asyncio|collections|stats|pyplot|_orm)\.[a-z]|\bimport (?:np|plt|nx)\b"
    )
    signatures = r"(?im)^\s*:?copyright\b.*team"
    for pattern in (paths, signatures):
        assert not re.findall(pattern, together)[:5]


def test_the_mask_stands_in_for_names_of_every_label(texts):
    masked = np.array(["NAME" in text for text in texts.texts])
    for label, name in enumerate(texts.label_names):
        assert 0.02 < masked[texts.labels == label].mean() < 0.8, name


def test_no_text_occurs_twice_and_none_is_tiny(texts):
    assert len({normalise(text) for text in texts.texts}) == len(texts)
    assert min(len(text.split()) for text in texts.texts) >= 3
    for text in texts.texts:
        text.encode("utf-8")


def test_each_file_has_one_label_and_what_was_left_out_is_reported(texts):
    pairs = {(group, label) for group, label in zip(texts.groups, texts.labels, strict=True)}
    assert len(pairs) == len(np.unique(texts.groups)) > 2000
    for what in ("docstrings", "left out", "more than one label"):
        assert what in " ".join(texts.notes)


def test_it_is_the_same_every_time(texts):
    again = load_docstrings()
    assert again.fingerprint == texts.fingerprint == texts.content_fingerprint()
    assert again.texts == texts.texts and again.notes == texts.notes
    assert again.groups.tolist() == texts.groups.tolist()


def test_it_loads_in_under_a_second(texts):
    before = time.process_time()  # reading and parsing is all it does, so the load of others need not count
    load_docstrings()
    assert time.process_time() - before < 1.0


def test_one_small_file_holds_both_corpora_and_the_licences_of_all_they_come_from(texts):
    assert corpus.CORPUS.stat().st_size <= 8e6
    with zipfile.ZipFile(corpus.CORPUS) as archive:
        assert sorted(archive.namelist()) == ["docstrings.json", "source.json", "versions.json"]
        versions = json.loads(archive.read("versions.json"))
    assert tuple(versions) == LABELS == texts.label_names
    listed, rule = LICENCES.read_text(encoding="utf-8"), "=" * 100
    for (label, version), size in zip(versions.items(), np.bincount(texts.labels), strict=True):
        row = re.search(rf"^{label} +{re.escape(version)} +([\w.-]+) +([\d,]+)$", listed, re.MULTILINE)
        assert row and row[2] == f"{size:,}", label
        heading = f"\n{label} {version}: {row[1]}\n{rule}"
        section = listed.partition(heading)[2].partition(rule)[0]
        assert re.search(r"\nCopyright lines of .*:\n  .*opyright", section), label
        assert re.search(r"\n--- (?:LICENSE|COPYING).* ---\n[\s\S]*(?:permi|grant)", section), label


def test_it_needs_no_folder_to_write_to_and_says_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    assert len(load_docstrings()) > len(load_source()) > 0
    assert capfd.readouterr() == ("", "") and not (tmp_path / "cache").exists()


def test_a_damaged_file_is_not_believed(tmp_path, monkeypatch):
    path = tmp_path / "corpus.zip"
    monkeypatch.setattr(corpus, "CORPUS", path)
    whole = LICENCES.with_name("corpus.zip").read_bytes()
    flipped = bytearray(whole)
    flipped[1_000_000] ^= 1
    with zipfile.ZipFile(path, "w") as archive:  # texts, but others
        record = {"texts": ["a"], "labels": [0], "label_names": ["x"], "groups": [0], "word_labels": None}
        archive.writestr("docstrings.json", json.dumps(record | {"notes": []}))
    other = path.read_bytes()
    for damaged in (None, b"", whole[:-100], whole[:100_000], bytes(flipped), b"x" * 1000, other):
        path.unlink(missing_ok=True)
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(
            UserError, match=r"cannot read the built-in texts: .*--force-reinstall.*corpus\.zip"
        ) as error:
            load_docstrings()
        assert "\n" not in str(error.value)
    path.write_bytes(whole)
    assert load_docstrings().fingerprint == corpus.DOCSTRINGS_FINGERPRINT


@pytest.mark.exhaustive
def test_two_processes_may_build_everything_at_once(tmp_path):
    """On few of the texts, so that it takes seconds: tokenizer, both stores and the index."""
    code = (
        "from course_lib.data import Texts, docstring_store, load_docstrings, store\n"
        "whole = load_docstrings()\n"
        "few = Texts(whole.texts[:8000], whole.labels[:8000], whole.label_names[:2], whole.groups[:8000])\n"
        "store.load_docstrings = lambda: few\n"
        "train, validation = docstring_store(max_length=64, progress=False)\n"
        "print(train.fingerprint, validation.fingerprint, *train.label_names)\n"
    )
    environment = os.environ | {"COURSE_LIB_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0] == answers[1]
    assert answers[0][0].split()[2:] == ["stdlib", "torch"] and answers[0][1] == ""
    kept = sorted(re.sub(r"-[0-9a-f]{20}", "", path.name) for path in tmp_path.iterdir())
    assert kept == ["docstring-store.json", "store"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (again.stdout, again.stderr) == answers[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, "found, not built again"
