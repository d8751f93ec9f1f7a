"""Texts as bags of n-grams: words, pairs of words, and runs of characters within words, each by a hash.

Joulin et al., "Bag of Tricks for Efficient Text Classification", 2017; Bojanowski et al., "Enriching Word Vectors with
Subword Information", 2017. Here only n-grams that were seen in training have a row in the table that learns.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from course_lib.base import require

NGRAMS = "course_lib n-grams"
"""What stands in a `tokenizer.json` of this kind."""
NUM_BUCKETS = 2**21
"""Hashes of words fall into the lower half, those of characters into the upper one."""
MAX_NGRAMS = 2**18
"""Rows of a table at most: the n-grams that the most texts hold."""
CHARACTERS = (2, 5)
"""Shortest and longest run of characters; a space on either side of a word counts as one."""
MAX_CHARACTERS = 50_000
"""A longer text counts by its beginning: what a batch needs of memory has a bound."""
_TEXTS_AT_ONCE = 1024
_WORD = re.compile(r"\w+|[^\w\s]+")
_FACTOR = 0x9E3779B97F4A7C15
_INVERSE = np.uint64(pow(_FACTOR, -1, 2**64))
_P = np.uint64(_FACTOR)


@dataclass
class Encoding:
    """Ids of a text, as those of a `tokenizers.Encoding`."""

    ids: list[int]
    overflowing: Sequence[Any] = ()

    def __len__(self) -> int:
        return len(self.ids)


class NgramTokenizer:
    """Ids of the n-grams of a text, each once, in ascending order; used as a `tokenizers.Tokenizer` is.

    Id 0 stands in every text, so that none is empty; words and their pairs have the ids from 1 to `num_words`,
    characters those above. With `inner`, a tokenizer, its ids come first, those below `offset`, and id n of an n-gram
    becomes `offset + n`.
    """

    def __init__(self, buckets: np.ndarray, *, inner: Any = None, offset: int = 0) -> None:
        """`buckets`: int64, those that were seen, ascending."""
        self.buckets, self.inner, self.offset = buckets, inner, offset
        self.num_words = int(np.searchsorted(buckets, NUM_BUCKETS // 2))
        # One more than there are buckets: what was not seen has id 0.
        self._id_of = np.zeros(NUM_BUCKETS, dtype=np.int64)
        self._id_of[buckets] = np.arange(1, len(buckets) + 1)

    def encode_batch(self, texts: Sequence[str], *, is_pretokenized: bool = False) -> list[Encoding]:
        """One encoding for each text. Texts that are lists of words have no n-grams here: a ValueError."""
        if is_pretokenized:
            raise ValueError("n-grams are made of texts, not of words")
        row, bucket = text_buckets(texts)
        ids = self._id_of[bucket]
        keys = _distinct(row[ids > 0] * NUM_BUCKETS + ids[ids > 0])
        row, ids = keys // NUM_BUCKETS, keys % NUM_BUCKETS + self.offset
        parts = np.split(ids, np.searchsorted(row, np.arange(1, len(texts)))) if texts else []
        if self.inner is None:
            return [Encoding([self.offset, *part.tolist()]) for part in parts]
        inner = self.inner.encode_batch(texts)
        return [
            Encoding([*first.ids, self.offset, *part.tolist()], first.overflowing)
            for first, part in zip(inner, parts, strict=True)
        ]

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return 1 if self.inner is None else int(self.inner.num_special_tokens_to_add(is_pair))

    def enable_truncation(self, max_length: int) -> None:
        """Cuts the ids of `inner`; n-grams are those of the whole text."""
        if self.inner is not None:
            self.inner.enable_truncation(max_length)

    def no_truncation(self) -> None:
        if self.inner is not None:
            self.inner.no_truncation()

    def no_padding(self) -> None:
        if self.inner is not None:
            self.inner.no_padding()

    def token_to_id(self, token: str) -> int | None:
        return None if self.inner is None else self.inner.token_to_id(token)

    def get_vocab(self) -> dict[str, int]:
        """The id of each n-gram, by its bucket."""
        numbers = enumerate(self.buckets.tolist(), self.offset + 1)
        inner = {} if self.inner is None else self.inner.get_vocab()
        return {**inner, "any text": self.offset, **{f"bucket {bucket}": i for i, bucket in numbers}}

    def get_vocab_size(self) -> int:
        return self.offset + 1 + len(self.buckets)

    def to_str(self) -> str:
        """JSON, which `from_str` reads."""
        steps = np.diff(self.buckets, prepend=0).astype("<i4").tobytes()
        return json.dumps(
            {
                "type": NGRAMS,
                "num_buckets": NUM_BUCKETS,
                "characters": CHARACTERS,
                "buckets": base64.b64encode(zlib.compress(steps, 1)).decode(),
                "offset": self.offset,
                "inner": None if self.inner is None else json.loads(self.inner.to_str()),
            }
        )

    @classmethod
    def from_str(cls, text: str) -> NgramTokenizer:
        """Raises ValueError for what `to_str` did not write, or wrote with other n-grams."""
        values = json.loads(text)
        if values["num_buckets"] != NUM_BUCKETS or tuple(values["characters"]) != CHARACTERS:
            raise ValueError("its n-grams are of another version")
        inner = None
        if values["inner"] is not None:
            inner = require("tokenizers").Tokenizer.from_str(json.dumps(values["inner"]))
            inner.no_truncation()
            inner.encode_special_tokens = True  # as `tokenizer.copied` has it
        steps = np.frombuffer(zlib.decompress(base64.b64decode(values["buckets"])), "<i4")
        return cls(np.cumsum(steps, dtype=np.int64), inner=inner, offset=values["offset"])


def train_ngrams(texts: Iterable[str], *, inner: Any = None, offset: int = 0) -> NgramTokenizer:
    """The n-grams of `texts` (the training part only) that two texts or more hold, at most `MAX_NGRAMS`."""
    counts, texts = np.zeros(NUM_BUCKETS, dtype=np.int64), iter(texts)
    while chunk := list(islice(texts, _TEXTS_AT_ONCE)):
        row, bucket = text_buckets(chunk)
        counts += np.bincount(_distinct(row * NUM_BUCKETS + bucket) % NUM_BUCKETS, minlength=NUM_BUCKETS)
    seen = np.flatnonzero(counts >= 2)
    if len(seen) > MAX_NGRAMS:
        seen = np.sort(seen[np.argsort(-counts[seen], kind="stable")[:MAX_NGRAMS]])
    return NgramTokenizer(seen, inner=inner, offset=offset)


def text_buckets(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The number of its text and the bucket of each n-gram of `texts`, int64 [n]: as often as it occurs.

    All texts stand in one array of characters, a space before and after each word, so that a hash of all runs of n
    characters is one product and one sum of arrays.
    """
    spaced = [" " + " ".join(_WORD.findall(text[:MAX_CHARACTERS].casefold())) + " " for text in texts]
    joined = "".join(spaced).encode("utf-32-le", "surrogatepass")
    code = np.frombuffer(joined, dtype="<u4").astype(np.uint64)
    row = np.repeat(np.arange(len(spaced)), [len(text) for text in spaced])
    is_space = code == ord(" ")
    code = _mixed(code + np.uint64(1))
    words = _words(code, row, is_space)
    characters = _characters(code, row, is_space)
    half = NUM_BUCKETS // 2
    shift = np.uint64(64 - half.bit_length() + 1)
    rows = np.concatenate([part for part, _ in (*words, *characters)])
    buckets = [(hashes >> shift).astype(np.int64) for _, hashes in words]
    buckets += [(hashes >> shift).astype(np.int64) + half for _, hashes in characters]
    return rows, np.concatenate(buckets)


def _words(code: np.ndarray, row: np.ndarray, is_space: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Words, then pairs of neighbours in one text."""
    start = np.flatnonzero(is_space[:-1] & ~is_space[1:]) + 1
    end = np.flatnonzero(~is_space[:-1] & is_space[1:]) + 1
    # A word's hash is the sum of its codes, each times a power; its place is divided out again (modulo 2^64).
    powers = np.cumprod(np.full(len(code), _P))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(code * powers)])
    back = np.cumprod(np.full(len(code) + 1, _INVERSE))
    hashes = _mixed((sums[end] - sums[start]) * back[start] + (end - start).astype(np.uint64))
    of_text = row[start]
    is_pair = of_text[:-1] == of_text[1:]
    pairs = _mixed(hashes[:-1] * _P + hashes[1:])
    return [(of_text, hashes), (of_text[:-1][is_pair], pairs[is_pair])]


def _characters(
    code: np.ndarray, row: np.ndarray, is_space: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Runs of characters of each length that stay within one word and the spaces around it."""
    found = []
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_space)])  # spaces before each place
    hashes, (shortest, longest) = code, CHARACTERS
    for n in range(2, longest + 1):
        last = len(code) - n + 1
        if last < 1:
            break
        hashes = hashes[:last] * _P + code[n - 1 :]
        if n >= shortest:
            inside = before[n - 1 : n - 1 + last] == before[1 : 1 + last]
            if n == 2:  # between two texts
                inside = inside & ~(is_space[:last] & is_space[1:])
            found.append((row[:last][inside], _mixed(hashes[inside] + np.uint64(n))))
    return found


def _distinct(values: np.ndarray) -> np.ndarray:
    """Sorted, each once. `np.unique` of NumPy 2.3 looks each up in a hash table: 60 times as slow on these."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-1) > 0]


def _mixed(values: np.ndarray) -> np.ndarray:
    """Each bit of 64 hangs on all others: the finaliser of a multiplicative hash."""
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return values ^ (values >> np.uint64(32))
