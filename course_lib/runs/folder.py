"""The run folder: what is where, and how it is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from course_lib.base import UserError, atomic_write_text, remove_leftovers, to_json
from course_lib.runs.config import OLD, read_config

WEIGHTS = ("best", "last")
"""The weights that a run keeps: those of the best validation, and those of its last step."""


class RunFolder:
    """Names of the files of one run. Nothing is created until it is written."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.config = self.directory / "config.yaml"
        self.record = self.directory / "run.json"
        self.metrics = self.directory / "metrics.jsonl"
        self.tensorboard = self.directory / "tensorboard"
        self.last = self.directory / "checkpoints" / "last.pt"
        self.best = self.directory / "checkpoints" / "best.pt"
        self.tokenizer = self.directory / "tokenizer.json"
        self.hf_model = self.directory / "hf_model"  # of its base: config and tokenizer
        self.report = self.directory / "report.html"

    @property
    def holds_run(self) -> bool:
        return self.config.exists() or self.record.exists() or self.last.exists()

    def create(self) -> None:
        """Make the folder. Raises UserError when that is impossible or another run is in it."""
        if self.holds_run:
            raise UserError(
                f"{self.directory} already holds a run: --resume continues it, or choose another --out"
            )
        try:
            self.last.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {self.directory}: {error.strerror}") from None

    def read_config(self) -> dict[str, Any]:
        """The values of the run that is here. Raises UserError when none is."""
        if not self.config.exists():
            raise UserError(f"{self.directory} holds no run: give the --out folder of `course-lib train`")
        return OLD | read_config(self.config)

    def remove_leftovers(self) -> None:
        """Remove what a kill in the middle of a save has left beside the whole files."""
        for folder in (self.directory, self.last.parent):
            remove_leftovers(folder)

    def read_checkpoint(self, weights: str = "best") -> dict[str, Any]:
        """The checkpoint of the `best` or the `last` weights. Raises UserError when there is none."""
        from course_lib.training import load_checkpoint

        if weights not in WEIGHTS:
            raise UserError(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
        return load_checkpoint(self.best if weights == "best" else self.last)

    def load_weights(self, checkpoint: dict[str, Any], model: Any) -> None:
        """Put the weights of a checkpoint of this run into `model`. Raises UserError when its shape is another."""
        try:
            if "shards" in checkpoint:  # of FSDP2
                from course_lib.distributed import load_whole_weights

                load_whole_weights(self.last.parent / checkpoint["shards"]["folder"], model)
            else:
                model.load_state_dict(checkpoint["model"])
        except RuntimeError as error:  # torch names each weight in a line of its own
            first = str(error).partition("\n")[2].partition("\n")[0] or str(error)
            raise UserError(f"the weights of {self.directory} do not fit this model: {first}") from None

    def write_record(self, record: dict[str, Any]) -> None:
        atomic_write_text(self.record, to_json(record) + "\n")

    def artifacts(self) -> dict[str, dict[str, Any]]:
        """Size and SHA-256 of every file in the folder but `run.json`, which holds this, and the files of W&B,
        whose own process may still be writing them."""
        found = {}
        for path in sorted(self.directory.rglob("*")):
            name = path.relative_to(self.directory).as_posix()
            if path.is_file() and path != self.record and not name.startswith("wandb/"):
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                found[name] = {"num_bytes": path.stat().st_size, "sha256": sha256}
        return found

    def read_record(self) -> dict[str, Any]:
        """`run.json`, or {} when there is none that can be read."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole lines of `metrics.jsonl`; a last line cut off by a kill is left out."""
        text = self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]
