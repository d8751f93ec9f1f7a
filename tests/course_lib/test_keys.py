"""One source for the keys of a config: what the help, help() and the page say is what `TrainConfig` does."""

import dataclasses
import importlib
import math
import pydoc
import re

import pytest

from course_lib.base import UserError, keys_page, keys_text, read_keys
from course_lib.cli.main import main
from course_lib.runs.config import CHOICES, TrainConfig, config_keys, known_keys
from tools import make_config_page

KEYS = {key.name: key for key in config_keys()}


def test_every_key_is_told_with_its_section_values_and_meaning():
    assert list(KEYS) == known_keys()
    for key in KEYS.values():
        assert key.section and key.values and key.default, key
        assert len(key.meaning) > 10 and key.meaning.endswith("."), (
            f"{key.name} needs a docstring of whole sentences"
        )


def test_the_page_is_the_one_that_the_code_makes():
    written = make_config_page.TARGET.read_text(encoding="utf-8")
    assert written == make_config_page.page(), "run: python -m tools.make_config_page"


def test_defaults_and_choices_are_those_of_the_class():
    default = TrainConfig(data="a.csv")
    for field in dataclasses.fields(TrainConfig):
        told = KEYS[field.name].default
        if field.default is None:
            assert told == "not set"
        elif field.default is not dataclasses.MISSING:
            said = {"empty": "", "true": "True", "false": "False"}.get(told, told)
            assert said == str(getattr(default, field.name))
    for name, choices in CHOICES.items():
        assert re.split(", | or ", KEYS[name].values) == list(choices)


@pytest.mark.parametrize("name", [key.name for key in KEYS.values() if "number" in key.values])
def test_the_range_that_is_told_is_the_one_that_is_checked(name):
    """One step outside the words is refused, the end itself is not refused for its size."""
    said = KEYS[name].values
    low = re.search(r"(at least|above|between) (-?[\d.]+)|(-?[\d.]+) or more", said)
    if low is None:
        assert said == "a number"
        return
    end, is_open = float(low[2] or low[3]), low[1] == "above"
    outside = end if is_open else end - (1 if "whole" in said else 1e-9)
    with pytest.raises(UserError, match=name):
        TrainConfig(data="a.csv", **{name: outside})
    try:
        inside = math.ulp(0.0) if is_open else end
        TrainConfig(data="a.csv", **{name: int(inside) if "whole" in said else inside})
    except UserError as error:  # another key may be missing, but the value is good
        assert low[0] not in str(error)


def test_help_of_the_class_and_of_the_command_say_what_the_page_says(capsys):
    page, shown = make_config_page.page(), pydoc.render_doc(TrainConfig, renderer=pydoc.plaintext)
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    printed = capsys.readouterr().out
    for text in (shown, printed):
        squeezed = " ".join(text.replace("|", " ").split())
        for key in KEYS.values():
            assert " ".join(f"({key.values}) {key.meaning}".split()) in squeezed, key.name
    assert all(f"| `{name}` |" in page for name in KEYS)
    assert TrainConfig(data="a.csv").__doc__ == TrainConfig.__doc__


def test_a_class_of_ones_own(tmp_path, monkeypatch):
    """Comments that head nothing are no headings; without docstrings the meaning is empty."""
    (tmp_path / "own_config.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\n"
        "class Own:\n"
        '    """Words."""\n'
        "\n"
        "    # First\n"
        "\n"
        "    # why this\n"
        "    name: str\n"
        '    """What it\n'
        '    is."""\n'
        "    size: int | str = 3\n"
        "    # Not a heading\n"
        "    share: float | None = None\n"
        "\n"
        "    # Second\n"
        "\n"
        "    kind: str = 'a'\n"
        "    is_on: bool = False\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    owner = importlib.import_module("own_config").Own
    keys = read_keys(owner, {"kind": ("a", "b")}, {"size": (1, 9, "between 1 and 9")})
    assert keys_text(keys) == (
        "First:\n  name  (text)\n      What it is.\n"
        "  size = 3  (a whole number between 1 and 9 or auto)\n"
        "  share = not set  (a number)\n\n"
        "Second:\n  kind = a  (a or b)\n  is_on = false  (true or false)"
    )
    assert keys_page(keys) == (
        "## First\n\n| Key | Default | Values | Meaning |\n|---|---|---|---|\n"
        "| `name` | required | text | What it is. |\n"
        "| `size` | 3 | a whole number between 1 and 9 or auto |  |\n"
        "| `share` | not set | a number |  |\n\n"
        "## Second\n\n| Key | Default | Values | Meaning |\n|---|---|---|---|\n"
        "| `kind` | a | a or b |  |\n| `is_on` | false | true or false |  |\n"
    )


def test_the_metric_that_is_watched_follows_from_the_task_unless_it_is_named():
    def monitor(**values):
        return TrainConfig(data="docstrings", **values).monitor

    assert monitor() == "macro_f1"
    assert monitor(task="token-classification") == monitor(task="language-modelling") == "loss"
    assert monitor(monitor="loss") == monitor(monitor="loss", task="language-modelling") == "loss"
    old = TrainConfig.from_dict({"data": "a.csv", "monitor": "loss"})  # as earlier runs have written it
    assert old.monitor == "loss" and not old.higher_is_better
    assert TrainConfig(data="a.csv").higher_is_better
    again = TrainConfig.from_dict(TrainConfig(data="a.csv").to_dict())
    assert again.monitor == "macro_f1" and again == TrainConfig(data="a.csv")
