"""The parts of a run's data as stores: to train on, to validate on, and to test on, from one table or from several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from course_lib.base import UserError, digest
from course_lib.data.store import SPLIT_SEED, VOCAB_SIZE, TokenStore, tokenizer_of
from course_lib.data.texts import Texts, split

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Parts(NamedTuple):
    """What a run trains on and is judged by."""

    train: TokenStore
    validation: TokenStore
    fingerprint: str
    notes: list[str]
    test: TokenStore | None = None
    columns: Mapping[str, str] = {}
    """The names of the columns that `text` and `label` were read from."""
    sources: Mapping[str, tuple[Texts, np.ndarray]] = {}
    """The texts of `train` and `validation`, and which of them."""


def make_parts(
    texts: Texts,
    *,
    validation_texts: Texts | None = None,
    test_texts: Texts | None = None,
    max_length: int,
    tokenizer: Tokenizer | None = None,
    vocab_size: int = VOCAB_SIZE,
    kinds: Sequence[str] = ("tokens",),
    task: str = "classification",
    validation: float = 0.1,
    progress: bool = True,
) -> Parts:
    """`texts` to train on, but for the share `validation` where there are no `validation_texts`. A tokenizer that is
    trained sees texts to train on alone; `kinds` as in `tokenizer_of`. `notes` say of each table what its own do, how
    many texts were cut, and how many of the texts to judge by are trained on as well.

    Raises UserError as `split`, `train_tokenizer` and `TokenStore.build` do.
    """
    if validation_texts is None:
        try:
            mine, held_out = split(texts, validation=validation, seed=SPLIT_SEED)
        except UserError as error:
            raise UserError(f"{error}{_asks_for_column(texts, task)}") from None
    else:
        mine, held_out = np.arange(len(texts)), np.arange(0)
    if tokenizer is None:
        tokenizer = tokenizer_of(texts, mine, vocab_size=vocab_size, kinds=kinds)

    def stored(part: Texts) -> TokenStore:
        return TokenStore.build(part, tokenizer, max_length=max_length, task=task, progress=progress)

    store = stored(texts)
    notes = [*texts.notes, *_cut(store, len(texts))]
    stores, fingerprints = {"validation": store.subset(held_out)}, [texts.fingerprint]
    trained_on = np.unique(texts.group_numbers()[mine])
    for name, part in (("validation", validation_texts), ("test", test_texts)):
        if part is not None:
            stores[name] = stored(part)
            fingerprints += [name, part.fingerprint]
            told = [*part.notes, *_cut(stores[name], len(part))]
            if same := int(np.isin(part.group_numbers(), trained_on).sum()):
                told.append(f"{same} of {len(part)} texts are trained on as well")
            notes += [f"{name}_data: {note}" for note in told]
    fingerprint = texts.fingerprint if len(fingerprints) == 1 else digest(*fingerprints)
    judged = (
        (texts, held_out)
        if validation_texts is None
        else (validation_texts, np.arange(len(validation_texts)))
    )
    return Parts(
        store.subset(mine),
        stores["validation"],
        fingerprint,
        notes,
        stores.get("test"),
        texts.columns,
        {"train": (texts, mine), "validation": judged},
    )


def _cut(store: TokenStore, num_texts: int) -> list[str]:
    cut = f"{store.num_truncated:,} of {num_texts:,} texts were cut to max_length={store.max_length} tokens"
    return [cut] if store.num_truncated else []


def _asks_for_column(texts: Texts, task: str) -> str:
    is_distinct = task == "classification" and len(texts.label_names) == len(texts) > 1
    return (
        f"; every row has a label of its own: is {texts.columns['label']!r} the right column?"
        if (is_distinct and texts.columns)
        else ""
    )
