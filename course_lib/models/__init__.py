"""Compact transformers, and what makes models cheaper to train: adapters, low-bit weights."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.models.hf import load_hf_model
    from course_lib.models.lora import add_lora, merge_lora
    from course_lib.models.low_bit import quantize_frozen
    from course_lib.models.transformers import (
        Dropout,
        Encoder,
        EncoderBlock,
        LanguageModel,
        ModelConfig,
        TextClassifier,
        TokenClassifier,
        make_model,
        masked_mean,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
