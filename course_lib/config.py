"""`TrainConfig`: every number of a run in one frozen object, checked when it is made."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.errors import UserError

BUILT_IN_DATA = "docstrings"
MONITORS = ("loss", "accuracy")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. Raises UserError when a value cannot be used; the message names the key."""

    data: str
    """`"docstrings"` for the built-in corpus, else the path of a CSV with the columns `text,label`."""
    validation: float = 0.1
    """Share of the data held out, in (0, 1)."""
    vocab_size: int = 8192
    """Upper bound of the trained vocabulary."""
    max_length: int = 256
    """Tokens kept of each text."""
    d_model: int = 64
    num_layers: int = 2
    num_heads: int = 4
    dropout: float = 0.1
    micro_batch_size: int = 64
    """Texts per forward pass."""
    learning_rate: float = 2e-3
    """Peak learning rate, reached after the warmup."""
    final_learning_rate_ratio: float = 0.0
    """Where the cosine ends, as a share of the peak."""
    warmup_fraction: float = 0.1
    """Share of all steps in which the learning rate rises."""
    weight_decay: float = 0.01
    max_norm: float = 1.0
    """Gradients are scaled down to this total norm; `.inf` turns clipping off."""
    max_epochs: int | None = None
    """None: as many as make about 500 steps, within 3 and 100."""
    max_steps: int | None = None
    """None: the epochs decide."""
    seed: int = 0
    is_deterministic: bool = False
    """Refuse operations without a deterministic version (matters on GPUs)."""
    device: str = "auto"
    """`"auto"`, `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"`."""
    monitor: str = "loss"
    """Validation metric that chooses `best.pt`: `"loss"` or `"accuracy"`."""
    log_every_steps: int = 20
    checkpoint_every_steps: int = 100
    """Saved at the first log at or after so many steps, and at the end of each epoch."""
    validate_every_steps: int | None = None
    """None: at the end of each epoch only."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _coerce(field, getattr(self, field.name)))
        for name, (low, high, says) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UserError(f"{name} must be {says}, got {value}")
        if not self.data:
            raise UserError(f"data is empty: give the path of a CSV, or {BUILT_IN_DATA!r}")
        if self.d_model % self.num_heads:
            raise UserError(
                f"d_model must be a multiple of num_heads, got {self.d_model} and {self.num_heads}"
            )
        if self.monitor not in MONITORS:
            raise UserError(f"monitor must be one of {', '.join(MONITORS)}, got {self.monitor!r}")

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "config") -> TrainConfig:
        """Unknown keys raise UserError, naming the nearest known one."""
        check_keys(values, source=source)
        if "data" not in values:
            raise UserError(f"{source} has no 'data': give the path of a CSV, or {BUILT_IN_DATA!r}")
        return cls(**values)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all values that shape the weights, whatever the order of keys. The path of the data is
        left out (its content has a fingerprint of its own), and so is how often to log and save."""
        values = {name: value for name, value in self.to_dict().items() if name not in WITHOUT_EFFECT}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


WITHOUT_EFFECT = frozenset({"data", "log_every_steps", "checkpoint_every_steps"})
"""Keys that may differ between a checkpoint and the run that resumes it."""

_COUNTS = (
    *("max_length", "d_model", "num_layers", "num_heads", "micro_batch_size", "max_epochs", "max_steps"),
    *("log_every_steps", "checkpoint_every_steps", "validate_every_steps"),
)
_TINY = math.ulp(0.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_RANGES: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(_COUNTS, (1, math.inf, "at least 1")),
    "validation": (_TINY, _BELOW_ONE, "above 0 and below 1"),
    # 256 bytes and 3 special tokens are always in the vocabulary.
    "vocab_size": (259, 2**24, "between 259 and 16777216"),
    "dropout": (0.0, _BELOW_ONE, "at least 0 and below 1"),
    "learning_rate": (_TINY, 1e3, "above 0 and at most 1000"),
    "final_learning_rate_ratio": (0.0, 1.0, "between 0 and 1"),
    "warmup_fraction": (0.0, 1.0, "between 0 and 1"),
    "weight_decay": (0.0, 1e3, "between 0 and 1000"),
    "max_norm": (_TINY, math.inf, "above 0 (.inf for no clipping)"),
    "seed": (0, 2**32 - 1, "between 0 and 4294967295"),
}


def known_keys() -> list[str]:
    return [field.name for field in dataclasses.fields(TrainConfig)]


def check_keys(values: Mapping[Any, Any], *, source: str) -> None:
    """Raise UserError for the first key that `TrainConfig` does not have."""
    for key in values:
        if key not in known_keys():
            raise UserError(
                f"{source}: unknown key {str(key)!r}; the nearest known key is {_nearest(str(key))!r}"
            )


def _nearest(key: str) -> str:
    """`lr` -> learning_rate (initials), `batch_size` -> micro_batch_size (a part), else by spelling."""
    known = known_keys()
    by_initials = [name for name in known if "".join(part[0] for part in name.split("_")) == key]
    by_part = [name for name in known if len(key) > 3 and (key in name or name in key)]
    return (by_initials or by_part or difflib.get_close_matches(key, known, n=1, cutoff=0.0))[0]


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file, keys checked. Raises UserError naming the file and the line."""
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read the config {path}: {reason}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise UserError(f"{place}: not valid YAML; write one 'key: value' per line") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: a config is made of 'key: value' lines, this holds a {_kind(values)}")
    check_keys(values, source=str(path))
    return values


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`["learning_rate=1e-3"]` -> `{"learning_rate": "1e-3"}`; the values are read as YAML."""
    import yaml

    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write --set key=value, for example --set max_epochs=5")
        check_keys({key.strip(): None}, source="--set")
        try:
            values[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UserError(f"--set {setting}: {text!r} is not a YAML value; quote it") from None
    return values


def write_yaml(config: TrainConfig) -> str:
    """The config as YAML text, in the order of its fields."""
    import yaml

    return yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """`"learning_rate: 0.001 → 0.002"` for each key that differs and shapes the weights."""
    keys = [key for key in {**old, **new} if key not in WITHOUT_EFFECT]
    return [f"{key}: {old.get(key)} → {new.get(key)}" for key in keys if old.get(key) != new.get(key)]


def check_same_config(old: Mapping[str, Any], new: Mapping[str, Any], *, owner: object) -> None:
    """Raise UserError, naming what differs, unless a run of config `old` can go on with `new`."""
    changed = differences(old, new)
    if changed:
        raise UserError(
            f"{owner} was made with another config ({'; '.join(changed)}): "
            f"resume with the old values, or start a new run with another --out"
        )


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true/false", int: "whole number", float: "number", list: "list"}
    return names.get(type(value), type(value).__name__)


def _coerce(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value in the type of its field; what would lose information is refused.

    YAML 1.1 reads `1e-3` (no dot) as text, and everyone writes it so: text that is a number counts as one.
    """
    kind, _, optional = str(field.type).partition(" ")
    if (value is None and optional) or (kind in ("bool", "str") and type(value).__name__ == kind):
        return value
    if kind in ("int", "float") and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if kind == "float" and not math.isnan(number):
            return number
        if kind == "int" and number.is_integer():
            return int(value) if isinstance(value, int) else int(number)
    wanted = {"bool": "true or false", "str": "text", "int": "a whole number", "float": "a number"}[kind]
    shown = "empty" if value is None else f"{value!r} ({_kind(value)})"
    raise UserError(f"{field.name} must be {wanted}, got {shown}")
