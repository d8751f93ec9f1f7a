"""Runs that were trained for real, compared: what differs is named, what is equal is called equal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_runs import train, write_csv

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.runs.compare import _different, _flat, compare_runs, comparison_text
from course_lib.runs.folder import RunFolder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("compare")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(directory / "cache"))
        data, other = write_csv(directory / "texts.csv"), write_csv(directory / "other.csv", seed=1)
        train(directory / "a", data)
        train(directory / "twin", data)
        train(directory / "faster", data, learning_rate=2e-2, max_epochs=2)
        train(directory / "seed", data, seed=1)
        train(directory / "other", other)
        train(directory / "adapters", data, lora_rank=1, max_epochs=1)
    return directory


def test_a_run_made_twice_is_equal_bit_for_bit_and_no_warning_is_given(runs):
    comparison = compare_runs([runs / "a", runs / "twin"])
    assert comparison["are_weights_equal"] is True
    assert comparison["warnings"] == []
    assert not {"config", "data", "hardware"} & comparison["differences"].keys()
    assert len(set(comparison["metrics"]["loss"])) == 1
    assert "equal weights: yes, bit for bit" in comparison_text(comparison)


def test_another_config_is_named_with_what_came_of_it(runs):
    comparison = compare_runs([runs / "a", runs / "faster"])
    assert comparison["differences"]["config"] == {"learning_rate": [1e-2, 2e-2], "max_epochs": [3, 2]}
    assert comparison["are_weights_equal"] is False
    accuracies = [RunFolder(runs / name).read_record()["validation"]["accuracy"] for name in ("a", "faster")]
    assert comparison["metrics"]["accuracy"] == accuracies
    assert {"cost", "step", "samples_per_sec", "time_to_target_seconds"} <= comparison["metrics"].keys()
    assert len(comparison["warnings"]) == 1 and "one seed per config" in comparison["warnings"][0]


def test_what_adapters_save_is_told(runs):
    metrics = compare_runs([runs / "a", runs / "adapters"])["metrics"]
    assert metrics["num_trainable"][0] == metrics["num_parameters"][0]
    assert 5 * metrics["num_trainable"][1] < metrics["num_parameters"][0] < metrics["num_parameters"][1]
    page = (runs / "adapters" / "report.html").read_text()
    assert f"trained: {metrics['num_trainable'][1]:,}<" in page
    assert "trained: all<" in (runs / "a" / "report.html").read_text()
    if (peak := metrics["peak_memory_bytes"][1]) is not None:  # Windows does not tell
        assert f"{peak / 1e6:,.0f} MB" in page


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("a", "other"), "the data differ"),
        (("a", "faster", "other"), "the data differ"),
        (("a", "faster"), "one seed per config"),
    ],
)
def test_an_unfair_comparison_is_called_so(runs, names, says):
    assert any(says in warning for warning in compare_runs([runs / name for name in names])["warnings"])


def test_an_unfinished_run_is_named(runs, tmp_path):
    record = RunFolder(runs / "a").read_record()
    cut = RunFolder(tmp_path / "cut")
    kept = {key: record[key] for key in ("config", "data", "environment", "hardware", "resolved", "step")}
    cut.write_record({**kept, "status": "interrupted"})
    comparison = compare_runs([runs / "a", cut.directory])
    assert comparison["are_weights_equal"] is None
    assert any("run 2 is interrupted" in warning for warning in comparison["warnings"])
    assert comparison["metrics"]["accuracy"][1] is None
    comparison_text(comparison)


def test_the_command_prints_text_json_and_a_page(runs, tmp_path, capsys):
    folders = [str(runs / name) for name in ("a", "faster", "seed")]
    assert main(["compare", *folders]) == 0
    text = capsys.readouterr().out
    assert "learning_rate" in text and "loss" in text
    assert max(map(len, text.splitlines())) < 200
    page = tmp_path / "page.html"
    assert main(["compare", *folders, "--json", "--out", str(page)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["differences"]["config"]["seed"] == [0, 0, 1]
    assert "3 runs compared" in page.read_text() and "learning_rate" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"), [(["a"], "two runs or more"), (["a", "nowhere"], "holds no run")]
)
def test_what_cannot_be_compared_is_one_line(runs, capsys, arguments, says):
    assert main(["compare", *(str(runs / name) for name in arguments)]) == 2
    printed = capsys.readouterr()
    assert says in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    with pytest.raises(UserError):
        compare_runs([runs / name for name in arguments])


KEYS = st.text("abc", min_size=1, max_size=3)
TREES = st.recursive(
    st.none() | st.integers() | st.text("xy") | st.lists(st.integers()),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3),
)


@given(st.dictionaries(KEYS, TREES), st.dictionaries(KEYS, TREES))
def test_only_what_differs_is_listed(left, right):
    assert _different([_flat(left), _flat(left)]) == {}
    found = _different([_flat(left), _flat(right)])
    assert all(values[0] != values[1] for values in found.values())
    assert (found == {}) == ({k: v for k, v in _flat(left).items() if v is not None}
                             == {k: v for k, v in _flat(right).items() if v is not None})  # fmt: skip
