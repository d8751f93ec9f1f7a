"""Data: a built-in corpus, the learner's CSV, tokenizer, token store, and batches with little padding."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.base.cache import cache_dir
    from course_lib.data.batching import (
        IGNORE,
        Batches,
        BucketBatchSampler,
        collate,
        evaluation_batches,
        pad_fraction,
    )
    from course_lib.data.corpus import load_docstrings, load_source
    from course_lib.data.ngrams import NgramTokenizer, train_ngrams
    from course_lib.data.parts import Parts, make_parts
    from course_lib.data.sharding import ShardedOrder, shard_evenly
    from course_lib.data.store import TokenStore, docstring_store, split_store
    from course_lib.data.tables import find_columns, load_table, open_table
    from course_lib.data.texts import Texts, split
    from course_lib.data.tokenizer import (
        load_tokenizer,
        pad_id,
        parallel_tokenizers,
        save_tokenizer,
        train_tokenizer,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
