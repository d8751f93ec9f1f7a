"""Wrong solutions of 8.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_CONFIG = """
import dataclasses
import difflib
import hashlib
import json
from dataclasses import dataclass, field
import yaml

VERSION = 2

def as_number(name, value):
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None

def as_count(name, value):
    number = as_number(name, value)
    if number != int(number):
        raise ValueError(f"{name} must be whole, got {value!r}")
    return int(number)

@exercise("8.2")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    name: str
    learning_rate: float = 1e-3
    micro_batch_size: int = 32
    max_epochs: int = 3
    is_deterministic: bool = False
    class_weights: dict = field(default_factory=dict)

    def __post_init__(self):
        put = object.__setattr__
        put(self, "learning_rate", as_number("learning_rate", self.learning_rate))
        for name in ("micro_batch_size", "max_epochs"):
            put(self, name, as_count(name, getattr(self, name)))
        weights = {str(k): as_number("class_weights", v) for k, v in self.class_weights.items()}
        put(self, "class_weights", weights)
        if not isinstance(self.name, str) or not isinstance(self.is_deterministic, bool):
            raise ValueError("name must be text, is_deterministic true or false")

    @classmethod
    def from_text(cls, text):
        values = yaml.safe_load(text)
        if values.pop("version", None) != VERSION:
            raise ValueError(f"version must be {VERSION}")
        known = [f.name for f in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                nearest = difflib.get_close_matches(key, known, n=1, cutoff=0)[0]
                raise ValueError(f"unknown key {key!r}: did you mean {nearest!r}?")
        return cls(**values)

    def to_text(self):
        return yaml.safe_dump({"version": VERSION} | dataclasses.asdict(self), sort_keys=False)

    def fingerprint(self):
        values = dataclasses.asdict(self)
        del values["name"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
"""
_STRICT = 'raise ValueError(f"unknown key {key!r}: did you mean {nearest!r}?")'
_HASHED = "hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.2": wrong(
        _CONFIG,
        {
            "unknown keys ignored": (
                "unknown keys ignored",
                (_STRICT, "pass"),
                ("cls(**values)", "cls(**{k: values[k] for k in known if k in values})"),
            ),
            "unordered hash": ("an unordered hash", _HASHED, "str(hash(json.dumps(values, sort_keys=True)))"),
            "fingerprint depends on the order of keys": (
                "depends on the order of keys",
                ", sort_keys=True).encode",
                ").encode",
            ),
            "the version is not looked at": (
                "version of the text is not looked at",
                'raise ValueError(f"version must be {VERSION}")',
                "pass",
            ),
            "cast without a look": (
                "cast without a look",
                "    if number != int(number):\n",
                "    if False:\n",
            ),
            "a bool counts as a number": ("`true` counts as 1", "isinstance(value, bool)", "False"),
            "numbers stay texts": (
                "as the file spells it",
                '        put(self, "learning_rate", as_number("learning_rate", self.learning_rate))\n',
                "",
            ),
            "weights as the file spells them": (
                "the text of the file, not the values",
                '{str(k): as_number("class_weights", v) for',
                "{str(k): v for",
            ),
            "text put together by hand": (
                "put together by hand",
                'yaml.safe_dump({"version": VERSION} | dataclasses.asdict(self), sort_keys=False)',
                '"".join(f"{k}: {v}\\n" for k, v in ({"version": VERSION} | dataclasses.asdict(self)).items())',
            ),
            "the name is hashed": ("`name` is hashed too", '        del values["name"]\n', ""),
        },
    )
}
