"""A trained run as one file that other programs load, without this library where the format allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.base import UserError, atomic_file, require, to_json
from course_lib.models import merge_lora
from course_lib.runs.predict import load_trained
from course_lib.training import weights_sha256


def export_run(run_folder: str | Path, file_format: str, out: str | Path | None = None) -> Path:
    """Write the best model of a run as `file_format`, a key of `FORMATS`; returns the path.

    The name is `RUN-stepN-XXXXXXXX`, the last part being the start of the `weights_sha256` of the run;
    `out` replaces folder and name (without it: `exports` in the run folder). LoRA adapters are merged.
    In the file are also `tokenizer.json` and `model.json` (label names, task, config, step, weights_sha256).

    Raises UserError when the run holds no model, a package is absent, or the file cannot be written.
    """
    trained = load_trained(run_folder)
    sha256 = weights_sha256(trained.model)
    about = {"label_names": trained.label_names, "task": trained.config.task, "step": trained.step}
    about |= {"weights_sha256": sha256, "config": trained.config.to_dict()}
    extra = {"tokenizer.json": trained.tokenizer.to_str(), "model.json": to_json(about)}
    suffix, write = FORMATS[file_format]
    folder = Path(run_folder).resolve()
    path = Path(out or folder / "exports" / f"{folder.name}-step{trained.step}-{sha256[:8]}{suffix}")
    with atomic_file(path) as temporary:
        try:
            write(merge_lora(trained.model).eval(), trained.config.max_length, extra, temporary)
        except (UserError, OSError):
            raise
        except Exception as error:  # any: a graph cannot be made of each model
            reason = str(error).partition("\n")[0]
            raise UserError(f"{file_format} cannot hold this model: {reason}; take safetensors") from error
    return path


def _safetensors(model: nn.Module, max_length: int, extra: dict[str, str], path: Path) -> None:
    require("safetensors.torch", extra="export").save_model(model, str(path), metadata=extra)


def _torch_export(model: nn.Module, max_length: int, extra: dict[str, str], path: Path) -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=max_length)
    shapes = ({0: batch, 1: length}, {0: batch, 1: length})
    with torch.no_grad():
        program = torch.export.export(model, _example(max_length), dynamic_shapes=shapes)
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files=extra)


def _example(max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask [3, T], one row padded: what is traced must not hold for whole rows alone."""
    width = min(5, max_length)
    mask = torch.ones(3, width, dtype=torch.bool)
    mask[1, width // 2 + 1 :] = False
    return torch.ones(3, width, dtype=torch.int64), mask


FORMATS: dict[str, tuple[str, Callable[..., Any]]] = {
    "safetensors": (".safetensors", _safetensors),
    "torch-export": (".pt2", _torch_export),
}
"""Suffix and writer: weights alone; a graph for any batch size and width."""
