"""The files of a Hugging Face checkpoint: which there must be, which a run keeps, and which go along with its model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from course_lib.base import UserError, atomic_directory, to_json
from course_lib.data import load_tokenizer, pad_id

FIX = "give a folder that save_pretrained wrote, model and tokenizer"
_CONFIGS = ("config.json", "generation_config.json")
_TOKENIZERS = (
    *("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "chat_template*"),
    *("vocab.*", "merges.txt", "*.model"),  # what the slow tokenizers are made of
)


def check_hf_folder(folder: str | Path, task: str = "classification") -> Path:
    """The path of a folder with a model's config and its tokenizer. Raises UserError for anything else."""
    path = Path(folder)
    if not path.exists() and not path.is_absolute():
        kind = "ForCausalLM" if task == "language-modelling" else ""
        raise UserError(
            f"hf_model={folder} is no folder here, and names of a hub are not fetched. Save the model once where "
            f"there is a network, in Python: from transformers import AutoModel{kind} as M, AutoTokenizer as T; "
            f"[X.from_pretrained({str(folder)!r}).save_pretrained('DIR') for X in (M, T)]; then give hf_model=DIR"
        )
    for name in ("config.json", "tokenizer.json"):
        if not (path / name).is_file():
            raise UserError(f"hf_model={folder} is no Hugging Face checkpoint: it has no {name}; {FIX}")
    return path


def keep_hf_files(source: str | Path, target: Path) -> None:
    """Copy all but the weights: from these and a checkpoint the model can be made again. Nothing is replaced."""
    if not target.exists():
        with atomic_directory(target) as temporary:
            _copy(Path(source), temporary, _CONFIGS + _TOKENIZERS)


def write_hf_tokenizer(source: Path, target: Path, max_length: int) -> None:
    """Put the tokenizer in `source` beside a saved model, so that `AutoTokenizer` finds it. It cuts texts to
    `max_length` tokens where it is asked to cut."""
    _copy(source, target, _TOKENIZERS)
    path = target / "tokenizer_config.json"
    if path.exists():
        settings = json.loads(path.read_text(encoding="utf-8"))
    else:
        tokenizer = load_tokenizer(target / "tokenizer.json")
        fill = tokenizer.id_to_token(pad_id(tokenizer))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": fill}
    path.write_text(to_json(settings | {"model_max_length": max_length}) + "\n", encoding="utf-8")


def _copy(source: Path, target: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for file in source.glob(pattern):
            if file.is_file():
                shutil.copyfile(file, target / file.name)
