"""Wrong solutions of 8.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.checking.mutants import Mistake
from autograder.lessons.lesson_08.mutants.refusals import REFUSING

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
        return float(value) + 0.0
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None

def as_count(name, value):
    number = as_number(name, value)
    if not float(number).is_integer():
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
        if not isinstance(self.class_weights, dict):
            raise ValueError(f"class_weights must be a table, got {self.class_weights!r}")
        if not all(isinstance(key, str) for key in self.class_weights):
            raise ValueError(f"keys of class_weights must be text, got {self.class_weights!r}")
        weights = {str(k): as_number("class_weights", v) for k, v in self.class_weights.items()}
        put(self, "class_weights", weights)
        if not isinstance(self.name, str):
            raise ValueError(f"name must be text, got {self.name!r}")
        if not isinstance(self.is_deterministic, bool):
            raise ValueError(f"is_deterministic must be true or false, got {self.is_deterministic!r}")

    @classmethod
    def from_text(cls, text):
        values = yaml.safe_load(text)
        if not isinstance(values, dict):
            raise ValueError("no version: a config is made of 'key: value' lines")
        version = values.pop("version", None)
        if version != VERSION:
            raise ValueError(f"version must be {VERSION}, got {version}")
        known = [f.name for f in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                nearest = difflib.get_close_matches(str(key), known, n=1, cutoff=0)[0]
                raise ValueError(f"unknown key {key!r}: did you mean {nearest!r}?")
        return cls(**values)

    def to_text(self):
        return yaml.safe_dump({"version": VERSION} | dataclasses.asdict(self), sort_keys=False)

    def fingerprint(self):
        values = dataclasses.asdict(self)
        del values["name"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
"""
_TEXT = 'yaml.safe_dump({"version": VERSION} | dataclasses.asdict(self), sort_keys=False)'
_HASHED = "hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()"
_WEIGHTS = '{str(k): as_number("class_weights", v) for k, v in self.class_weights.items()}'

_READING: dict[str, Mistake] = {
    "JSON alone is read": (
        "a text in the other format",
        "values = yaml.safe_load(text)",
        "values = json.loads(text)",
    ),
    "the version must come first": (
        "keys in another order, are refused",
        "        version = values",
        '        if next(iter(values)) != "version":\n'
        '            raise ValueError("version comes first")\n        version = values',
    ),
    "numbers stay texts": (
        "as the file spells it",
        '        put(self, "learning_rate", as_number("learning_rate", self.learning_rate))\n',
        "",
    ),
    "whole numbers stay whole": (
        "as the file spells it",
        "        return float(value) + 0.0\n",
        "        return value if isinstance(value, int) else float(value)\n",
    ),
    "weights as the file spells them": ("as the file spells it", _WEIGHTS, "dict(self.class_weights)"),
    "a small e and a minus alone": (
        "the other format, or keys in another order",
        "        return float(value) + 0.0\n",
        "        if isinstance(value, str) and 'e-' not in value:\n            raise ValueError\n"
        "        return float(value) + 0.0\n",
    ),
    "lines of keys and values alone": (
        "keys in another order, are refused",
        (
            "values = yaml.safe_load(text)\n",
            "values = {}\n"
            "        for line in [text] if text[0] == '{' else text.replace(':\\n  ', ': {').splitlines():\n"
            "            is_table = line[0] != '{' and '{' in line and '}' not in line\n"
            "            into = line[:2] == '  ' and values\n"
            "            found = yaml.safe_load(line.strip() + '}' * is_table)\n"
            "            if into:\n                into['class_weights'] |= found\n"
            "            else:\n                values |= found\n",
        ),
    ),
    "every field must be there": (
        "a field that is left out raises",
        "        return cls(**values)",
        '        if len(values) < len(known):\n            raise ValueError("a key is missing")\n'
        "        return cls(**values)",
    ),
    "another default of learning_rate": ("another value than its default", "float = 1e-3", "float = 1e-4"),
    "another default of micro_batch_size": ("another value than its default", "int = 32", "int = 33"),
    "another default of max_epochs": ("another value than its default", "int = 3\n", "int = 1\n"),
    "another default of is_deterministic": ("another value than its default", "bool = False", "bool = True"),
    "another default of class_weights": (
        "another value than its default",
        "default_factory=dict",
        'default_factory=lambda: {"csv": 1.0}',
    ),
}

_WRITING: dict[str, Mistake] = {
    "text put together by hand": (
        "put together by hand",
        _TEXT,
        '"".join(f"{k}: {v}\\n" for k, v in ({"version": VERSION} | dataclasses.asdict(self)).items())',
    ),
    "escapes of JSON": (
        "JSON's escapes are no YAML",
        _TEXT,
        'json.dumps({"version": VERSION} | dataclasses.asdict(self))',
    ),
    "no version in the text": ("the version is left out", '{"version": VERSION} | ', ""),
    "digits are rounded": (
        "digits are rounded",
        _TEXT,
        'yaml.safe_dump({"version": VERSION} | dataclasses.asdict(self) '
        '| {"learning_rate": float(f"{self.learning_rate:.6g}")})',
    ),
    "a field is not written": (
        "left out or written otherwise",
        _TEXT,
        'yaml.safe_dump({"version": VERSION} | {k: v for k, v in dataclasses.asdict(self).items() '
        'if k != "is_deterministic"})',
    ),
    "signs that YAML does not hold": (
        "are written without escapes",
        _TEXT,
        'json.dumps({"version": VERSION} | dataclasses.asdict(self), ensure_ascii=False)',
    ),
    "writing empties the config": (
        "`vars(self)` is no copy",
        f"        return {_TEXT}",
        f"        text = {_TEXT}\n        self.class_weights.clear()\n        return text",
    ),
    "the text is a field": (
        "configs differ in something",
        ("= field(default_factory=dict)\n", "= field(default_factory=dict)\n    raw: str = ''\n"),
        (
            "known = [f.name for f in dataclasses.fields(cls)]",
            "known = [f.name for f in dataclasses.fields(cls)][:-1]",
        ),
        ("return cls(**values)", "return cls(**values, raw=text)"),
        (_TEXT, f"{_TEXT.replace('dataclasses.asdict(self)', 'self.plain()')}"),
        ("values = dataclasses.asdict(self)", "values = self.plain()"),
        (
            "    def fingerprint",
            "    def plain(self):\n        values = dataclasses.asdict(self)\n        del values['raw']\n"
            "        return values\n\n    def fingerprint",
        ),
    ),
    "a rate of -0.0": (
        "0.0 equals -0.0",
        ("float(value) + 0.0", "float(value)"),
        (
            'del values["name"]\n',
            'del values["name"]\n'
            '        values["class_weights"] = {k: v + 0.0 for k, v in self.class_weights.items()}\n',
        ),
    ),
    "weights strung together": (
        "one after the other with nothing between",
        'del values["name"]\n',
        'del values["name"]\n'
        '        values["class_weights"] = ", ".join(f"{k}={v}" for k, v in sorted(self.class_weights.items()))\n',
    ),
    "unordered hash": ("an unordered hash", _HASHED, "str(hash(json.dumps(values, sort_keys=True)))"),
    "fingerprint depends on the order of keys": (
        "depends on the order of keys",
        ", sort_keys=True).encode",
        ").encode",
    ),
    "fields are not hashed": (
        "fields are left out",
        'del values["name"]\n',
        'del values["name"], values["is_deterministic"]\n',
    ),
    "six decimals are hashed": (
        "numbers are rounded before they are hashed",
        'del values["name"]\n',
        'del values["name"]\n        values["learning_rate"] = f"{self.learning_rate:f}"\n',
    ),
    "rounded before it is hashed": (
        "numbers are rounded before they are hashed",
        'del values["name"]\n',
        'del values["name"]\n        values["learning_rate"] = round(values["learning_rate"], 8)\n',
    ),
    "values hashed without their names": (
        "without the names that they belong to",
        _HASHED,
        "hashlib.sha256(repr(sorted(json.dumps(v, sort_keys=True) for v in values.values())).encode()).hexdigest()",
    ),
    "the text is hashed": (
        "what is hashed is the text",
        (
            "return cls(**values)",
            "made = cls(**values)\n        object.__setattr__(made, 'raw', values)\n        return made",
        ),
        (
            "values = dataclasses.asdict(self)",
            "values = dict(getattr(self, 'raw', dataclasses.asdict(self)))",
        ),
    ),
    "weights run into each other": (
        "one after the other with nothing between",
        'del values["name"]\n',
        'del values["name"]\n'
        '        values["class_weights"] = "".join(f"{k}{v}" for k, v in sorted(self.class_weights.items()))\n',
    ),
    "one default for all": (
        "or gets another value than its default",
        ("        return cls(**values)", "        return cls(**(DEFAULTS | values))"),
        ("@exercise", "DEFAULTS = {'class_weights': {}}\n\n@exercise"),
        (f"weights = {_WEIGHTS}", f"weights = self.class_weights and {_WEIGHTS}"),
    ),
    "values hashed as they are spelt": (
        "values are hashed as they are spelt",
        "float(value) + 0.0",
        "float(value)",
    ),
    "the name is hashed": ("`name` is hashed too", '        del values["name"]\n', ""),
}

MUTANTS: dict[str, tuple[Mutant, ...]] = {"8.2": wrong(_CONFIG, _READING | REFUSING | _WRITING)}
