"""A trained run as a file or folder that other programs load, without this library where the format allows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.base import UserError, atomic_directory, atomic_file, require, to_json
from course_lib.models import HFModel, merge_lora, save_hf_model, write_hf_tokenizer
from course_lib.runs.folder import RunFolder
from course_lib.runs.using.predict import TrainedModel, load_trained
from course_lib.training import weights_sha256

HF = "hf"


def export_run(run_folder: str | Path, file_format: str, out: str | Path | None = None) -> Path:
    """Write the best model of a run as `file_format`, a key of `FORMATS`; returns the path.

    The name is `RUN-stepN-XXXXXXXX`, the last part being the start of the `weights_sha256` of the run;
    `out` replaces folder and name (without it: `exports` in the run folder). LoRA adapters are merged.
    In the file are also `tokenizer.json` and `model.json` (label names, task, config, step, weights_sha256).
    `hf` makes a folder of these and the model, for `from_pretrained`: of runs with `hf_model` alone.

    Raises UserError when the run holds no model or one that the format cannot hold, a package is absent, or the file
    cannot be written.
    """
    trained = load_trained(run_folder)
    if file_format == HF:
        _check_hf(trained, run_folder, out)
    sha256 = weights_sha256(trained.model)
    about = {"label_names": trained.label_names, "task": trained.config.task, "step": trained.step}
    about |= {"weights_sha256": sha256, "config": trained.config.to_dict()}
    extra = {"tokenizer.json": trained.tokenizer.to_str(), "model.json": to_json(about)}
    suffix, write = FORMATS[file_format]
    folder = Path(run_folder).resolve()
    path = Path(out or folder / "exports" / f"{folder.name}-step{trained.step}-{sha256[:8]}{suffix}")
    with (atomic_directory if file_format == HF else atomic_file)(path) as temporary:
        try:
            write(merge_lora(trained.model).eval(), trained.config.max_length, extra, temporary)
            if file_format == HF:
                write_hf_tokenizer(
                    _tokenizer_files(trained, run_folder), temporary, trained.config.max_length
                )
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


def _hf(model: HFModel, max_length: int, extra: dict[str, str], path: Path) -> None:
    save_hf_model(model, path, json.loads(extra["model.json"])["label_names"])
    (path / "model.json").write_text(extra["model.json"] + "\n", encoding="utf-8")


def _check_hf(trained: TrainedModel, run_folder: str | Path, out: str | Path | None) -> None:
    if not isinstance(trained.model, HFModel):
        raise UserError(
            f"{run_folder} holds a model of course_lib's own, an architecture that from_pretrained does not know: "
            "--format hf is for runs with hf_model; take safetensors or torch-export"
        )
    if out is not None and Path(out).exists():
        raise UserError(f"{out} is there already: give --out a new folder")


def _tokenizer_files(trained: TrainedModel, run_folder: str | Path) -> Path:
    """What the run kept of its base; of a run of before the base itself, or the one file that every run has."""
    run = RunFolder(run_folder)
    places = (run.hf_model, Path(trained.config.hf_model or ""), run.directory)
    return next(place for place in places if (place / "tokenizer.json").exists())


def _example(max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask [3, T], one row padded: what is traced must not hold for whole rows alone."""
    width = min(5, max_length)
    mask = torch.ones(3, width, dtype=torch.bool)
    mask[1, width // 2 + 1 :] = False
    return torch.ones(3, width, dtype=torch.int64), mask


FORMATS: dict[str, tuple[str, Callable[..., Any]]] = {
    "safetensors": (".safetensors", _safetensors),
    "torch-export": (".pt2", _torch_export),
    HF: ("", _hf),
}
"""Suffix and writer: weights alone; a graph for any batch size and width; a folder for `from_pretrained`."""
