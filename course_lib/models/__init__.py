"""Compact transformers, and what makes models cheaper to train: adapters, low-bit weights."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.models.hf import HFModel, load_hf_model, save_hf_model
    from course_lib.models.hf_folder import check_hf_folder, keep_hf_files, write_hf_tokenizer
    from course_lib.models.lora import add_lora, merge_lora
    from course_lib.models.low_bit import quantize_frozen
    from course_lib.models.ngrams import JoinedClassifier, NgramClassifier, set_ngram_weights
    from course_lib.models.transformers import (
        Dropout,
        Encoder,
        EncoderBlock,
        LanguageModel,
        ModelConfig,
        TargetScale,
        TextClassifier,
        TokenClassifier,
        make_head,
        make_model,
        masked_mean,
        set_target_scale,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
