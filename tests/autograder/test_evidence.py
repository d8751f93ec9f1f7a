"""Evidence: what is kept follows the schema, what is damaged is refused, and a record is confirmed by a new check."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
import tokenize
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.engine import evidence
from autograder.engine.check import check_source
from autograder.engine.evidence import MAX_ATTEMPTS, History, family
from autograder.engine.timing.blocks import KeptBlock
from autograder.lessons.checking.mutants import load_mutants
from autograder.notebooks.check import check_evidence
from autograder.show.evidence_page import page
from course_lib.base.errors import UserError
from tests.autograder.results import result_of
from tests.autograder.solutions import reference_sources

RIGHT = """\
@exercise("0.1")
def speedup(a, b):
    if a <= 0 or b <= 0:
        raise ValueError("zero")
    return a / b
"""
WRONG = RIGHT.replace("a / b", "b / a")
SCHEMA = json.loads(Path(evidence.__file__).with_name("evidence.schema.json").read_text())
CELLS = [*reference_sources("00").values(), *reference_sources("01").values()] + [
    mutant.source for mutants in load_mutants("01").values() for mutant in mutants
]


def block(ratio: float, order: str = "ABBA", part: str = "") -> KeptBlock:
    seconds = tuple(0.2 * ratio if side == "A" else 0.2 for side in order)
    return KeptBlock(part=part, order=order, seconds=seconds, num_steps=12, y=math.log(ratio))


def dicts(blocks: list[KeptBlock]) -> list[dict[str, Any]]:
    return [each.to_dict() for each in blocks]


def speed(blocks: list[KeptBlock], bar: float = 1.3) -> dict[str, Any]:
    ratios = [math.exp(b.y) for b in blocks]
    middle = {"estimate": ratios[0], "low": min(ratios), "high": max(ratios)}
    return middle | {"bar": bar, "blocks": len(ratios), "spread": 0.02, "ratios": ratios}


@pytest.fixture
def record(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of the evidence of a wrong solution, and what it holds."""
    written = Path(check_source("0.1", WRONG).evidence)
    path = tmp_path / "record.json"
    path.write_bytes(written.read_bytes())
    return path, json.loads(path.read_text())


# What is kept


def test_the_schema_says_every_field_and_real_evidence_follows_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    result = check_source("0.1", RIGHT)
    found = json.loads(Path(result.evidence).read_text())
    jsonschema.validate(found, SCHEMA)
    assert found.keys() == SCHEMA["properties"].keys() == set(SCHEMA["required"])
    assert found["result"].keys() == SCHEMA["properties"]["result"]["properties"].keys()
    assert found["result"] == {key: value for key, value in result.to_dict().items() if key != "evidence"}


@pytest.mark.further
@pytest.mark.measures
def test_evidence_of_a_measurement_follows_the_schema(root: Path) -> None:
    source = reference_sources("01")["1.1"]
    result = check_source("1.1", source)
    found = json.loads(Path(result.evidence or str(result.reason)).read_text())
    jsonschema.validate(found, SCHEMA)
    assert found["blocks"] and len(found["blocks"]) == found["result"]["speedup"]["blocks"]
    assert found["attempts"] == 1 and found["clock_verdict"] == found["result"]["verdict"]
    assert found["conditions"] and found["conditions"].keys() <= documented(root)


def documented(root: Path) -> set[str]:
    """The last parts of the fields that the documentation names."""
    return set(re.findall(r"`[\w\[\].]*?\.?(\w+)`", (root / "docs" / "evidence.md").read_text()))


def test_the_documentation_names_every_field(root: Path) -> None:
    def fields(schema: dict[str, Any]) -> set[str]:
        inner = schema.get("items", schema).get("properties", {})
        return set(inner).union(*map(fields, inner.values()))

    assert fields(SCHEMA) <= documented(root), fields(SCHEMA) - documented(root)


def test_a_folder_that_cannot_be_written_costs_the_evidence_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evidence").write_text("a file where the folder should be")
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    result = check_source("0.1", RIGHT)
    assert (result.verdict, result.score, result.evidence) == ("pass", 1, None), result


def test_what_a_killed_check_was_writing_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    leftover = tmp_path / "evidence" / ".building-1-a.tmp"
    leftover.parent.mkdir()
    leftover.write_text("half")
    os.utime(leftover, (0, 0))
    path = Path(check_source("0.1", WRONG).evidence)
    assert {file.name for file in path.parent.iterdir()} == {path.name, path.with_suffix(".html").name}


# What is refused


@pytest.mark.parametrize(
    ("keys", "value", "says"),
    [
        (("result", "score"), "1", r"result\.score: '1' is not of type 'number'"),
        (("result", "verdict"), "perfect", r"result\.verdict"),
        (("blocks",), [block(2.0).to_dict() | {"order": "AABB"}], r"blocks\[0\]\.order"),
        (("blocks",), [block(2.0).to_dict() | {"order": "AB"}], r"blocks\[0\]\.seconds"),
        (("threads",), None, r"threads"),
        (("source",), RIGHT, r"source was changed after the check"),
        (("schema_version",), 1, r"another version"),
    ],
)
def test_a_changed_field_is_named_in_one_line(
    record: tuple[Path, dict[str, Any]], keys: tuple[str, ...], value: Any, says: str
) -> None:
    path, found = record
    inner = found
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(found))
    with pytest.raises(UserError, match=says) as error:
        evidence.read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "1", '"text"', '{"schema_version": {}}', "[" * 100_000]
)
def test_what_is_no_evidence_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"not an evidence file|another version"):
        evidence.read(path)


def test_a_damaged_record_of_our_own_is_no_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    path = evidence.path_of("0.1", RIGHT)
    path.parent.mkdir()
    path.write_text('{"schema_version": 2}')
    assert evidence.history("0.1", RIGHT) == History()


# The new check


def test_a_new_check_confirms_the_record(record: tuple[Path, dict[str, Any]]) -> None:
    before = evidence.path_of("0.1", WRONG).read_bytes()
    report = check_evidence(record[0])
    assert report.record.confirmed is True and report.record.verdict == "fail"
    assert "confirms" in report.record.says
    again = report.exercises[0].evidence
    assert again.endswith("-again.json") and evidence.read(Path(again))["source"] == WRONG
    assert evidence.path_of("0.1", WRONG).read_bytes() == before


@pytest.mark.further
def test_a_score_changed_by_hand_is_found_out(record: tuple[Path, dict[str, Any]]) -> None:
    path, found = record
    found["result"] |= {"score": 1, "verdict": "pass", "reason": "Right on secret inputs."}
    path.write_text(json.dumps(found))
    ran = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "check", "--evidence", path, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    report = json.loads(ran.stdout)
    assert report["score"] == 0 and report["record"]["score"] == 1
    assert report["record"]["confirmed"] is False and "NOT" in report["record"]["says"]


# The page


def test_the_page_shows_all_and_escapes_what_learners_wrote(record: tuple[Path, dict[str, Any]]) -> None:
    found = record[1]
    blocks = [block(1.6), block(1.4, "BAAB")]
    found |= {
        "source": "x = '<script>'  # \ud800",
        "blocks": dicts(blocks),
        "attempts": 2,
        "clock_verdict": "pass",
    }
    found["conditions"] = {"load_per_core": 0.5, "odd": {"a": "<b>"}}
    found["result"] |= {"reason": "<script>", "speedup": speed(blocks), "review": ["Faster than `1.5 ×`."]}
    html = page(found, result_of(found))
    html.encode("utf-8")
    assert "<script" not in html and "http" not in html and "src=" not in html
    assert html.count("<circle") == 2 and "1.60×" in html and "load per core" in html
    assert "For a person to look at" in html and "Machine" in html
    assert "<span>B</span> 16.67</td>" in html and "<span>A</span> 23.33</td>" in html


def test_the_page_stands_beside_the_file() -> None:
    path = Path(check_source("0.1", WRONG).evidence).with_suffix(".html")
    html = path.read_text()
    assert "upside down" in html and "def speedup" in html and "color-scheme: light dark" in html


# The family of a piece of code


def renamed(source: str, prefix: str) -> str:
    """The code with new names for what its functions bind, wherever that is safe to tell from the text alone."""
    fixed = {"self", "cls"}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        fixed |= {value for field in ("attr", "module") if (value := getattr(node, field, None))}
        if isinstance(node, ast.keyword | ast.arg | ast.alias):
            fixed |= {
                str(getattr(node, "arg", None) or getattr(node, "asname", None) or getattr(node, "name", ""))
            }
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Global | ast.Nonlocal):
            fixed |= {getattr(node, "name", "")} | set(getattr(node, "names", ()))
    for statement in tree.body:
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            fixed |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    bound = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    } - fixed
    tokens = [
        token._replace(string=prefix + token.string)
        if token.type == tokenize.NAME and token.string in bound
        else token
        for token in tokenize.generate_tokens(StringIO(source).readline)
    ]
    return tokenize.untokenize((token.type, token.string) for token in tokens)


@pytest.mark.parametrize("source", CELLS, ids=range(len(CELLS)))
def test_renaming_reformatting_and_commenting_keep_the_family_of_real_code(source: str) -> None:
    changed = "# A comment.\n" + renamed(source, "my_")
    if len(re.findall(r"^ +\w+ = ", source, re.MULTILINE)):
        assert "my_" in changed
    assert family(changed) == family(source)
    assert family(ast.unparse(ast.parse(source))) == family(source)


NAMES = st.lists(
    st.from_regex(r"[a-z_][a-z0-9_]{0,6}|é|数", fullmatch=True).filter(
        lambda name: (
            name.isidentifier() and name not in {*dir(__builtins__), "torch", "inner", "solve", "item"}
        )
    ),
    min_size=5,
    max_size=5,
    unique=True,
)
TEMPLATE = """
import torch

def solve({a}, {b}=3, *, key):
    {c} = [{d} * 2 for {d} in {a} if {d}]
    def inner({d}, *{e}):
        return {d} + {b} + len({e})
    try:
        {e} = torch.stack({c}).sum({b})
    except ValueError as {d}:
        return {d}.args
    with open("{{}}") as {d}:
        return inner({e}), sorted({c}, key=lambda {a}: ({a}.item, {b})), {d}

class Item:
    def item(self, {a}):
        self.{b} = {a}
"""


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES, st.sampled_from(["", "# {}", "'''{}'''"]))
def test_names_of_locals_do_not_matter(first: list[str], second: list[str], comment: str) -> None:
    import keyword

    if any(map(keyword.iskeyword, first + second)):
        return
    attribute = f"self.{first[1]} ="
    one, two = (TEMPLATE.format(**dict(zip("abcde", names, strict=True))) for names in (first, second))
    two = re.sub(r"self\.\w+ =", attribute, two)
    assert family(one) == family(two + comment.format(second[0]))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CELLS), st.data())
def test_another_constant_operator_or_attribute_is_another_family(source: str, data: st.DataObject) -> None:
    tree = ast.parse(source)
    places = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.BinOp)
        or (isinstance(node, ast.Constant) and isinstance(node.value, int | float))
    ]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    if isinstance(place, ast.Constant):
        place.value = place.value + 1 if not isinstance(place.value, bool) else not place.value
    elif isinstance(place, ast.Attribute):
        place.attr += "_"
    else:
        place.op = ast.FloorDiv() if not isinstance(place.op, ast.FloorDiv) else ast.Add()
    assert family(ast.unparse(tree)) != family(source)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("def f(a, b): return a - b", "def f(a, b): return b - a"),
        ("def f(a): return g(a)", "def f(a): return h(a)"),
        ("def f(): return 1", "def f(): return 1.0"),
        ("def f():\n    import torch as t", "def f():\n    import numpy as t"),
        ("def f(x):\n    x = 1\n    return x", "def f(x):\n    y = 1\n    return x"),
        ("def f(*, a): pass", "def f(a): pass"),
        (
            "def f():\n    base = 2\n    return int('0', base=base)",
            "def f():\n    bass = 2\n    return int('0', bass=bass)",
        ),
        ("def f(a): return \"id='a'\"", "def f(b): return \"id='b'\""),
        ("def f(: pass", "def f(: pass # other"),
    ],
)
def test_what_does_something_else_is_another_family(one: str, two: str) -> None:
    assert family(one) != family(two)


@pytest.mark.parametrize(
    "source", ["", "\0", "\ud800 = 1", "(" * 10_000, "-" * 100_000 + "1", "x = '\ud800'"]
)
def test_any_text_has_a_family(source: str) -> None:
    assert re.fullmatch("[0-9a-f]{64}", family(source))


# What is remembered


def test_an_open_question_goes_on_and_a_decided_one_starts_anew() -> None:
    open_ = History().after("inconclusive", [block(1.3)] * 40, 1.3)
    assert (open_.attempts, open_.clock_verdict) == (0, "inconclusive")
    assert len(open_.prior_blocks()) == 40
    decided = open_.after("pass", [*open_.prior_blocks(), *[block(2.0)] * 60], 1.3)
    assert (decided.attempts, decided.clock_verdict, decided.prior_blocks()) == (1, "pass", [])


def test_the_clock_is_remembered_by_its_own_word() -> None:
    lost_by_quality = History().after("fail", [block(2.0)] * 12, 1.3)
    assert (lost_by_quality.attempts, lost_by_quality.clock_verdict) == (1, "pass")


def test_of_several_parts_each_is_decided_by_its_own_blocks() -> None:
    fast, slow = ([block(speedup, part=part)] * 12 for part, speedup in (("A", 3.0), ("B", 1.0)))
    assert History().after("pass", fast, 1.5).clock_verdict == "pass"
    found = History().after("fail", fast + slow, 1.5)
    assert (found.attempts, found.clock_verdict) == (1, "fail")
    still_open = History().after("inconclusive", fast + slow[:2], 1.5)
    assert [b.part for b in still_open.prior_blocks()] == ["A"] * 12 + ["B"] * 2


def test_after_the_last_attempt_its_verdict_stands_whatever_comes() -> None:
    from autograder.engine.timing.verdict import decide

    found = History()
    for _ in range(MAX_ATTEMPTS):
        assert found.prior_blocks() == []
        found = found.after("fail", [block(1.0)] * 12, 1.3)
    assert found.stands and len(found.prior_blocks()) == 12
    lucky = [*found.prior_blocks(), *[block(9.0)] * 40]
    assert decide([b.y for b in lucky], 1.3).outcome == "fail"
    assert found.after("fail", lucky, 1.3) == found


@pytest.mark.further
@pytest.mark.measures
def test_the_engine_lets_the_verdict_of_the_last_attempt_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = reference_sources("01")["1.1"]
    result = check_source("1.1", source)
    found = json.loads(Path(result.evidence or str(result.reason)).read_text())
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    found |= {"attempts": MAX_ATTEMPTS, "clock_verdict": "fail", "blocks": dicts([block(1.0)] * 12)}
    path = evidence.path_of("1.1", source)
    path.parent.mkdir()
    path.write_text(json.dumps(found))
    result = check_source("1.1", source)
    assert result.verdict == "fail", result.reason
    assert "the last of them stands" in str(result.reason)
    kept = json.loads(path.read_text())
    assert (kept["attempts"], kept["blocks"]) == (MAX_ATTEMPTS, found["blocks"])
    (again,) = check_evidence(path).exercises
    assert again.verdict == "pass", again.reason


def test_other_hardware_or_versions_remember_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    path = Path(check_source("0.1", RIGHT).evidence)
    found = json.loads(path.read_text())
    assert found["versions"]["training-workbook"] == version("training-workbook")
    for change in (
        {},
        {"hardware": found["hardware"] | {"cores": 999}},
        {"versions": {"python": "3", "torch": "1"}},
    ):
        blocks = [block(1.3)] * 3
        path.write_text(
            json.dumps(
                found | {"blocks": dicts(blocks), "clock_verdict": "inconclusive", "attempts": 1} | change
            )
        )
        expected = History() if change else History(1, "inconclusive", tuple(blocks))
        assert evidence.history("0.1", "# The same code.\n" + RIGHT) == expected
