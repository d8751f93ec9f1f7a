"""Byte-level BPE, trained here (Hugging Face `tokenizers`). Nothing is fetched from a hub."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from course_lib.base import UserError, atomic_write_text, require
from course_lib.data.ngrams import NGRAMS, NgramTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD_ID, UNK_ID, CLS_ID = 0, 1, 2
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]")
SMALLEST_VOCAB = 256 + len(SPECIAL_TOKENS)


def train_tokenizer(texts: Iterable[str], *, vocab_size: int = 8192) -> Tokenizer:
    """Train byte-level BPE on `texts` (the training split only, lest validation leak into the vocabulary).

    Every text is encoded with a leading `[CLS]`, so none comes out empty, and a `[PAD]` written in a text is
    ordinary characters. Deterministic: the same texts give the same tokenizer. Method: Sennrich et al. 2016
    (BPE), Radford et al. 2019 (on bytes, so no text has unknown tokens).

    Raises:
        UserError: `vocab_size` has no room for the bytes and special tokens.
    """
    require("tokenizers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    if vocab_size < SMALLEST_VOCAB:
        raise UserError(
            f"vocab_size={vocab_size} is too small: bytes and special tokens need {SMALLEST_VOCAB}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    with parallel_tokenizers():
        tokenizer.train_from_iterator(texts, trainer=trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", CLS_ID)]
    )
    return copied(tokenizer)


def save_tokenizer(tokenizer: Tokenizer, path: str | Path) -> None:
    """Write `tokenizer.json` (or another name), whole or not at all."""
    atomic_write_text(Path(path), tokenizer.to_str())


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read a tokenizer that `save_tokenizer` wrote, of tokens or of n-grams, or that of a Hugging Face model.

    Raises:
        UserError: the file is missing or is not a tokenizer.
    """
    fix = "Give the tokenizer.json of a run or of a Hugging Face model."
    try:
        text = Path(path).read_text(encoding="utf-8")
        if NGRAMS in text[:100]:
            return cast("Tokenizer", NgramTokenizer.from_str(text))  # it is used as one
        require("tokenizers")
        from tokenizers import Tokenizer

        return copied(Tokenizer.from_str(text))
    except UserError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise UserError(f"cannot read the tokenizer {path}: {error}. {fix}") from error


def copied(tokenizer: Tokenizer) -> Tokenizer:
    """Another tokenizer of the same vocabulary and rules, that cuts and pads nothing."""
    tokenizer = type(tokenizer).from_str(tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Not kept in tokenizer.json. Without it a text that contains "[PAD]" would encode to the padding id.
    tokenizer.encode_special_tokens = True
    return tokenizer


def pad_id(tokenizer: Tokenizer) -> int:
    """The id that fills up rows. Any id will do where the tokenizer has none: padding is masked."""
    known = (tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>", "<|endoftext|>", "</s>"))
    return next((number for number in known if number is not None), 0)


@contextlib.contextmanager
def parallel_tokenizers() -> Iterator[None]:
    """Let `tokenizers` use its threads inside the block, and tell it to use none afterwards.

    Once its threads have run, a fork (a DataLoader with workers) makes it warn on stderr and may deadlock
    unless TOKENIZERS_PARALLELISM is set. A value that the user has set is put back.
    """
    before = os.environ.get("TOKENIZERS_PARALLELISM", "false")
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    try:
        yield
    finally:
        os.environ["TOKENIZERS_PARALLELISM"] = before
