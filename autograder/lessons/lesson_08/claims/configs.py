"""What exercises 8.2 and 8.3 say, and the wrong solutions that go against it."""

from __future__ import annotations

from autograder.lessons.checking import EXPLAINS, Claims

CONFIG: Claims = {
    "A config is read from a file that a person wrote.": EXPLAINS,
    "What is misspelt, of another type, or from another time must not pass in silence.": (
        "unknown keys ignored",
        "keys are spelt as it likes",
        "older versions are read",
    ),
    "in a text of version 2": ("newer versions are read", "the version is not looked at"),
    "name: str": ("any name becomes a text", "any name is taken"),
    "learning_rate: float = 1e-3": ("another default of learning_rate",),
    "micro_batch_size: int = 32": ("another default of micro_batch_size", "a bool counts as a whole number"),
    "max_epochs: int = 3": ("another default of max_epochs",),
    "is_deterministic: bool = False": (
        "another default of is_deterministic",
        "bool of any value",
        "a number counts as true or false",
    ),
    "class_weights: dict[str, float] = field(default_factory=dict)": (
        "another default of class_weights",
        "one default for all",
        "what is empty is a default",
        "weights that are no numbers",
        "a bool counts as a weight",
        "weights as the file spells them",
    ),
    "from_text(cls, text: str)": ("JSON alone is read",),
    "Read what YAML 1.1 reads, most JSON too": ("JSON alone is read",),
    "`version: 2` and the fields, in any order": ("the version must come first",),
    "Fields left out keep their default": ("every field must be there",),
    "The values have the types of their fields: `1e-3` and `1` become floats where the field is one.": (
        "numbers stay texts",
        "whole numbers stay whole",
    ),
    "Raises ValueError": ("an unknown key is a KeyError", "Python's own errors", "no key is near enough"),
    "and the message says what to change, for": ("the nearest key is not named", "the field is not named"),
    "an unknown key with that key": ("the unknown key is not named",),
    "and the nearest known one": (
        "the nearest key is not named",
        "all known keys are named, and none as the nearest",
        "near keys alone are named",
        "no key is near enough",
    ),
    'another or no version with the word "version"': (
        "the version is cut to a whole number",
        "no version is the newest",
        "the message says nothing of the version",
    ),
    "a value of another type with the name of its field": ("the field is not named",),
    '3.5 or true for an int, "fast" for a float': (
        "cast without a look",
        "a bool counts as a number",
        "a bool counts as a whole number",
    ),
    "A key that is no text to YAML, such as 5, is unknown too.": ("a key that is no text",),
    "A text that `from_text` reads as an equal config.": (
        "falsy values left out",
        "text put together by hand",
        "no version in the text",
        "digits are rounded",
        "escapes of JSON",
        "a field is not written",
    ),
    "A hash of all values but `name`": (
        "six decimals are hashed",
        "the name is hashed",
        "fields are not hashed",
        "rounded before it is hashed",
        "values hashed without their names",
        "weights run into each other",
    ),
    "equal for equal values": ("the text is hashed", "values hashed as they are spelt"),
    "(1 and 1.0, or 0.0 and -0.0, are equal)": ("values hashed as they are spelt",),
    "in every process": ("unordered hash",),
    "in any order of keys.": ("fingerprint depends on the order of keys",),
}

RECORD: Claims = {
    "In three months somebody asks: which code, which data, on what, and how good was it on long texts?": EXPLAINS,
    "Write the record that answers.": EXPLAINS,
    "It must be written when training fails too: a failure is a result.": ("failures are not recorded",),
    "Run `train(config, out)`": ("training writes elsewhere", "a second try after a failure"),
    'write what repeats and judges it to `out/"run.json"`': (
        "the record is never written",
        "written as Python shows it",
    ),
    "returns the same.": ("something is added after writing", "nothing is returned"),
    "Takes: `train`, which writes files into the empty folder `out` (also into folders inside)": (
        "files in folders inside are left out",
    ),
    "and returns labels": ("labels and predictions are not compared",),
    "int [N], predictions int [N], and the name of each sample's slice, N texts": ("a mean of the slices",),
    "or raises.": ("the error is swallowed",),
    '`git("rev-parse", "HEAD")` runs git in the project\'s folder and returns what it prints.': (
        "git of another folder",
    ),
    "The record, plain JSON values:": ("no plain values", "written as Python shows it"),
    '"status", "failure" "finished" and None': ("an empty text for no failure",),
    'or "failed" and a text that holds the error\'s message': (
        "the beginning of the message",
        "finished whatever happens",
        "the error's type alone",
        "a failure without words is none",
        "the message escaped",
        "some failures are not recorded",
    ),
    '"config" as given': (
        "the config as training left it",
        "a copy of the outermost dict alone",
        "the config as texts",
    ),
    '"git" {"commit": the whole hash': ("the hash is cut short",),
    '"is_dirty": bool': (
        "run record without the dirty flag",
        "always clean",
        "what is staged does not count",
        "what git prints for the flag",
    ),
    "new files count": ("new files do not count", "new files are left out of the status"),
    "when the run begins": (
        "the commit is asked for when the run is over",
        "the flag is asked for when the run is over",
        "git is asked once for all runs",
    ),
    '"data" {"sha256": of the bytes of `data_path`}': (
        "the data are named, not fingerprinted",
        "the beginning of the data alone",
        "the first million bytes of a file",
        "another hash of the data",
        "the hash of a path is kept",
    ),
    '"environment" {"python", "torch", "numpy"}: versions': (
        "the version of Python is unknown",
        "the version of torch is unknown",
        "the version of NumPy is left out",
    ),
    '"hardware" {"num_cores", "num_threads": torch\'s} at least': (
        "the cores are not counted",
        "cores for threads",
        "the threads are unknown",
    ),
    '"metrics" {"accuracy"': ("a mean of the slices", "labels and predictions are not compared"),
    '"slices": {name: {"accuracy", "num_samples"}}}': ("metrics without slices", "slices without their size"),
    "None after a failure": ("empty metrics after a failure",),
    '"artifacts" {name relative to `out`, with "/": sha256}': (
        "files by their name alone",
        "the hash of a name",
    ),
    "of each file that `train` wrote": (
        "files without an ending are left out",
        "hidden files are left out",
        "every run.json is left out",
        "the record counts itself",
        "no files after a failure",
    ),
    '"times" {…} all that differs between two equal runs': (
        "equal runs differ",
        "times among the rest",
        "a time without its name",
    ),
    "When `train` raises, KeyboardInterrupt too, the record is written, and the error raised again.": (
        "a run stopped by hand has finished",
        "failures are not recorded",
        "the error is swallowed",
        "another error in its place",
        "a new error of the same kind",
    ),
}
