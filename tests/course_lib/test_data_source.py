"""The standard library's source as words with roles: what token classification is trained on."""

from __future__ import annotations

import numpy as np

from course_lib.data import load_source, split
from tools.extract import ROLES


def test_the_corpus_is_large_and_its_task_is_one():
    texts = load_source()
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
    again = load_source()
    assert again.fingerprint == texts.fingerprint == texts.content_fingerprint()
    train, validation = split(texts, validation=0.1, seed=0)
    assert not set(texts.groups[train]) & set(texts.groups[validation]), "files do not part"
    assert 0.08 < len(validation) / len(texts) < 0.12
