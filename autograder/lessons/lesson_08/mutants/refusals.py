"""Wrong solutions of 8.2 that refuse too little, too much, or without the words that help."""

from __future__ import annotations

from autograder.lessons.checking.mutants import Mistake

_STRICT = 'raise ValueError(f"unknown key {key!r}: did you mean {nearest!r}?")'
_VERSION = 'raise ValueError(f"version must be {VERSION}, got {version}")'
_NO_NAME = """        if not isinstance(self.name, str):
            raise ValueError(f"name must be text, got {self.name!r}")
"""
_NO_BOOL = """        if not isinstance(self.is_deterministic, bool):
            raise ValueError(f"is_deterministic must be true or false, got {self.is_deterministic!r}")
"""

REFUSING: dict[str, Mistake] = {
    "unknown keys ignored": (
        "unknown keys ignored",
        (_STRICT, "pass"),
        ("cls(**values)", "cls(**{k: values[k] for k in known if k in values})"),
    ),
    "keys are spelt as it likes": (
        "unknown keys ignored",
        "values = yaml.safe_load(text)\n",
        "values = {key.lower().replace('-', '_'): one for key, one in yaml.safe_load(text).items()}\n",
    ),
    "what is empty is a default": (
        "what is empty or nothing is taken for the default",
        "        if not isinstance(self.class_weights, dict)",
        "        put(self, 'class_weights', self.class_weights or {})\n"
        "        if not isinstance(self.class_weights, dict)",
    ),
    "the nearest key is not named": (
        "does not say what a person must change",
        _STRICT,
        'raise ValueError(f"unknown key {key!r}")',
    ),
    "all known keys are named, and none as the nearest": (
        "does not say what a person must change",
        _STRICT,
        'raise ValueError(f"unknown key {key!r}; known: {known}")',
    ),
    "the unknown key is not named": (
        "does not say what a person must change",
        _STRICT,
        'raise ValueError(f"unknown key; did you mean {nearest!r}?")',
    ),
    "a key that is no whole number": (
        "refused by accident",
        "get_close_matches(str(key),",
        "get_close_matches(str(key) if isinstance(key, int) else key,",
    ),
    "a key that is nothing": (
        "unknown keys ignored",
        "        for key in values:\n",
        "        values.pop(None, None)\n        for key in values:\n",
    ),
    "a key that is no text": ("refused by accident", "get_close_matches(str(key),", "get_close_matches(key,"),
    "falsy values left out": (
        "left out or written otherwise",
        "dataclasses.asdict(self), sort_keys",
        "{k: v for k, v in dataclasses.asdict(self).items() if v or k == 'name'}, sort_keys",
    ),
    "no key is near enough": ("refused by accident", ", cutoff=0)", ")"),
    "near keys alone are named": (
        "does not say what a person must change",
        (
            "nearest = difflib.get_close_matches(str(key), known, n=1, cutoff=0)[0]",
            "near = difflib.get_close_matches(str(key), known, n=1)",
        ),
        (
            _STRICT,
            "hint = f'; did you mean {near[0]!r}?' if near else ''\n"
            "                raise ValueError(f'version 2 has no key {key!r}{hint}')",
        ),
    ),
    "an unknown key is a KeyError": (
        "refused by accident",
        _STRICT,
        _STRICT.replace("ValueError", "KeyError"),
    ),
    "the version is not looked at": ("version of the text is not looked at", _VERSION, "pass"),
    "newer versions are read": (
        "version of the text is not looked at",
        "if version != VERSION",
        "if version is None or version < VERSION",
    ),
    "older versions are read": (
        "version of the text is not looked at",
        "if version != VERSION",
        "if version is None or version > VERSION",
    ),
    "a text without keys": (
        "refused by accident",
        '        if not isinstance(values, dict):\n            raise ValueError("no version: a config is made of '
        "'key: value' lines\")\n",
        "",
    ),
    "no version is the newest": (
        "a text without a version is taken for the newest",
        'values.pop("version", None)',
        'values.pop("version", VERSION)',
    ),
    "a version in a list": (
        "version of the text is not looked at",
        "if version != VERSION",
        "if version not in (VERSION, [VERSION])",
    ),
    "a version that is a text": (
        "does not say what a person must change",
        "if version != VERSION",
        "if version is None or float(version if isinstance(version, str) else version == VERSION and 2) != VERSION",
    ),
    "the version is cut to a whole number": (
        "version of the text is not looked at",
        "if version != VERSION",
        "if version is None or int(version) != VERSION",
    ),
    "the message says nothing of the version": (
        "does not say what a person must change",
        _VERSION,
        'raise ValueError(f"{VERSION} is needed, got {version}")',
    ),
    "cast without a look": ("3.5 becomes 3", "    if not float(number).is_integer():\n", "    if False:\n"),
    "a bool counts as a number": ("`true` counts as 1", "isinstance(value, bool)", "False"),
    "a bool counts as a whole number": (
        "`true` counts as 1",
        "    number = as_number(name, value)\n",
        "    number = as_number(name, int(value) if isinstance(value, bool) else value)\n",
    ),
    "a bool counts as a weight": (
        "`true` counts as 1",
        'as_number("class_weights", v)',
        'as_number("class_weights", v + 0 if isinstance(v, bool) else v)',
    ),
    "infinity for a whole number": (
        "refused by accident",
        "    if not float(number).is_integer():\n",
        "    if number != int(number):\n",
    ),
    "a text for true or false": (
        "`bool(value)` makes",
        _NO_BOOL,
        "        if self.is_deterministic in ('true', 'false'):\n"
        "            put(self, 'is_deterministic', self.is_deterministic == 'true')\n" + _NO_BOOL,
    ),
    "any name becomes a text": (
        "any value becomes a text",
        _NO_NAME,
        '        put(self, "name", str(self.name))\n',
    ),
    "any name is taken": ("any value becomes a text", _NO_NAME, ""),
    "bool of any value": (
        "`bool(value)` makes",
        _NO_BOOL,
        '        put(self, "is_deterministic", bool(self.is_deterministic))\n',
    ),
    "a number counts as true or false": (
        "`bool(value)` makes",
        "isinstance(self.is_deterministic, bool)",
        "isinstance(self.is_deterministic, int)",
    ),
    "weights that are no numbers": (
        "nobody looks at what stands in it",
        'as_number("class_weights", v)',
        "v if isinstance(v, str) and not v[0].isdigit() else as_number('class_weights', v)",
    ),
    "keys of weights become texts": (
        "keys of class_weights that are no texts",
        "        if not all(isinstance(key, str) for key in self.class_weights):\n",
        "        if False:\n",
    ),
    "the field is not named": (
        "does not say what a person must change",
        'f"{name} must be a number, got {value!r}"',
        'f"a number is needed, got {value!r}"',
    ),
    "Python's own errors": ("refused by accident", "except (TypeError, ValueError):", "except ValueError:"),
}
