"""Byte-level BPE trained on the spot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import load_tokenizer, save_tokenizer, train_tokenizer
from course_lib.data.tokenizer import CLS_ID, PAD_ID, UNK_ID

TEXTS = ["return the sum of two numbers", "return the product of two numbers", "the sum\n    of squares"] * 3


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=300)


def test_special_tokens_have_their_numbers(tokenizer):
    assert (
        [tokenizer.token_to_id(t) for t in ("[PAD]", "[UNK]", "[CLS]")]
        == [PAD_ID, UNK_ID, CLS_ID]
        == [0, 1, 2]
    )
    assert 259 < tokenizer.get_vocab_size() <= 300
    assert len(tokenizer.encode("return the sum").ids) < 8, "merges were learned"


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_any_text_comes_back_and_none_is_empty(tokenizer, text):
    ids = tokenizer.encode(text).ids
    assert ids[0] == CLS_ID
    assert tokenizer.decode(ids[1:]) == text
    assert not {PAD_ID, UNK_ID, CLS_ID} & set(ids[1:])


def test_special_tokens_written_in_a_text_are_plain_characters(tokenizer, tmp_path):
    text = "fill with [PAD] after [CLS] or [UNK]"
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    for candidate in (tokenizer, load_tokenizer(tmp_path / "tokenizer.json")):
        ids = candidate.encode(text).ids
        assert ids.count(PAD_ID) == ids.count(UNK_ID) == 0 and ids.count(CLS_ID) == 1
        assert candidate.decode(ids[1:]) == text


def test_saved_and_loaded_is_the_same_and_training_is_deterministic(tokenizer, tmp_path):
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").to_str() == tokenizer.to_str()
    assert train_tokenizer(TEXTS, vocab_size=300).to_str() == tokenizer.to_str()
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def test_errors_name_the_fix(tmp_path):
    with pytest.raises(UserError, match="vocab_size=100 is too small: bytes and special tokens need 259"):
        train_tokenizer(TEXTS, vocab_size=100)
    with pytest.raises(UserError, match="cannot read the tokenizer"):
        load_tokenizer(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(UserError, match="cannot read the tokenizer"):
        load_tokenizer(tmp_path / "broken.json")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the warning is about fork")
@pytest.mark.parametrize("users_own", [None, "true"])
def test_a_fork_after_use_warns_of_nothing(users_own, tmp_path):
    """A DataLoader forks; a line on stderr would cost a learner the points of the cell."""
    code = (
        "import os\n"
        "from course_lib.data import train_tokenizer\n"
        "train_tokenizer(['some text here'] * 50, vocab_size=280).encode_batch(['a b c'] * 50)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "print(os.environ['TOKENIZERS_PARALLELISM'])\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    if users_own is not None:
        environment["TOKENIZERS_PARALLELISM"] = users_own
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.strip() == (users_own or "false")
