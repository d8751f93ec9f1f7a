"""The standard library's source as words with roles: what token classification is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib.data import load_source, split
from tools.extract import ROLES, labelled_words

SOURCE = """import os
@dec.orate(x)
def f(a, b: int = g(1, c), *args, **kw) -> str:
    "Doc."
    self.x = obj.call(a, key=b)  # note
class A(Base):
    async def m(self): return await self.m(3.0) + f"{a}"
"""


def pieces_of(tmp_path, source):
    path = tmp_path / "some.py"
    path.write_text(source, encoding="utf-8")
    return labelled_words(str(path))


def test_each_word_gets_its_role(tmp_path):
    pieces = pieces_of(tmp_path, SOURCE)
    assert [words[0] for words, _ in pieces] == ["import", "def", "class", "def"]
    found = [(word, ROLES[role]) for words, roles in pieces for word, role in zip(words, roles, strict=True)]
    of = {role: [word for word, other in found if other == role] for role in ROLES}
    assert of["keyword"] == ["import", "def", "class", "async", "def", "return", "await"]
    assert (of["function"], of["class"]) == (["f", "m"], ["A"])
    assert of["call"] == ["orate", "g", "call", "m"] and of["attribute"] == ["x"]
    names = ["os", "dec", "x", "a", "b", "int", "c", "args", "kw", "str", "self", "obj", "a", "key", "b"]
    names += ["Base", "self", "self"]
    assert [word for word in of["name"] if word != "a"] == [word for word in names if word != "a"]
    assert of["number"] == ["1", "3.0"] and of["comment"] == ["# note"] and '"Doc."' in of["string"]


@pytest.mark.parametrize("source", ["def f(:\n  x = (", "x = '\0'", "if x:\n y\n  z\n"])
def test_a_file_that_cannot_be_tokenised_does_no_harm(tmp_path, source):
    assert isinstance(pieces_of(tmp_path, source), list)
    assert labelled_words(str(tmp_path / "absent.py")) == pieces_of(tmp_path, "") == []


def test_the_corpus_is_large_and_its_task_is_one(tmp_path):
    texts = load_source(progress=False)
    assert len(texts) > 5000 and texts.label_names == ROLES
    assert all(len(words) == len(roles) for words, roles in zip(texts.texts, texts.word_labels, strict=True))
    roles = np.concatenate([np.array(roles) for roles in texts.word_labels])
    assert np.bincount(roles, minlength=len(ROLES)).min() > 500
    # One word, several roles: its spelling does not tell.
    of_name = {
        ROLES[role]
        for words, labels in zip(texts.texts, texts.word_labels, strict=True)
        for word, role in zip(words, labels, strict=True)
        if word == "name"
    }
    assert {"attribute", "function", "name"} <= of_name
    again = load_source(progress=False)
    assert again.fingerprint == texts.fingerprint == texts.content_fingerprint()
    train, validation = split(texts, validation=0.1, seed=0)
    assert not set(texts.groups[train]) & set(texts.groups[validation]), "files do not part"
    assert 0.08 < len(validation) / len(texts) < 0.12
