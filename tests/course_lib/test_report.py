"""The report of a run that was trained for real: complete, readable without eyes or network, safe."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from record_runs import TOPICS, train, write_csv

from course_lib.base.figures import cell, duration
from course_lib.runs.folder import RunFolder
from course_lib.runs.report import report_html
from course_lib.training.scores import evaluation_summary


class Page(HTMLParser):
    """Tags, headings, labels of pictures, links; text that stands in a tag."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.pictures, self.links, self.headings, self.cells = [], [], [], [], []
        self.squares = {}  # of a heat map: what it says, and how often that came
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        if tag == "svg":
            self.pictures.append(values["aria-label"])
        self.links += [values[name] for name in ("src", "href", "xlink:href") if name in values]

    def handle_data(self, data):
        if self.tags[-1:] == ["h2"] and data.strip():
            self.headings.append(data.strip())
        if self.tags[-2:] == ["rect", "title"] and data.strip():
            name, _, count = data.rpartition(": ")
            self.squares[name] = int(count.replace(",", ""))
        if self.tags[-1:] in (["td"], ["th"]):
            self.cells.append(data.strip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(directory / "cache"))
        train(directory / "a <run>", write_csv(directory / "texts.csv"))
    return RunFolder(directory / "a <run>")


def test_the_page_holds_all_there_is_to_say(folder):
    record = folder.read_record()
    text = folder.report.read_text()
    page = Page(text)
    for heading in ("Health", "Curves", "Per label", "By length of the text", "Confusion", "Cost", "Config"):
        assert heading in page.headings
    assert {row["signal"] for row in record["health"]} <= set(page.cells)
    assert set(TOPICS) <= set(page.cells)  # escaped on the way in, whole on the way out
    assert f"{record['validation']['accuracy']:.1%}" in text
    assert record["weights_sha256"] in page.cells and record["data"]["fingerprint"] in page.cells
    for row in record["slices"]["length"]:
        assert row["slice"] in page.cells
    counts = [int(count) for row in record["confusion"] for count in row if count]
    assert sum(counts) == record["data"]["num_validation"]


def test_pictures_are_told_in_words_and_nothing_comes_from_elsewhere(folder):
    page = Page(folder.report.read_text())
    assert len(page.pictures) == 7
    assert all(re.search(r": (train|validation) from [\d.e+-]+ at step \d+ to", p) for p in page.pictures)
    assert "http" not in "".join(link for link in page.links if not link.startswith("#"))
    assert not [link for link in page.links if not link.startswith("#")]
    assert "script" not in page.tags and "link" not in page.tags
    ids = re.findall(r'\bid="([^"]+)"', folder.report.read_text())
    assert len(ids) == len(set(ids))  # figures do not take each other's markers


def test_what_a_user_named_is_escaped(folder):
    record = folder.read_record()
    record["config"]["data"] = record["data"]["notes"] = "<script>alert(1)</script>"
    record["data"]["label_names"] = ['"><script>x</script>'] * 3
    assert "script" not in Page(report_html("<script>", record, folder.read_metrics())).tags


def test_many_labels_show_what_they_are_mistaken_for_and_other_tasks_their_own_scores(folder):
    record, records = folder.read_record(), folder.read_metrics()
    rng = np.random.default_rng(0)
    labels, names = rng.integers(0, 30, 900), [f"kind {k}" for k in range(30)]
    wrong = np.where(labels == 7, 8, labels)
    summary = evaluation_summary("token-classification", labels, wrong, labels + 1, names)
    record["data"]["label_names"], record["config"]["task"] = names, "token-classification"
    page = Page(report_html("tokens", {**record, **summary}, records))
    assert {"most often mistaken for", "tokens", "kind 7", "kind 8"} <= set(page.cells)
    heat = page.pictures[-1]  # too many labels for a table of counts
    assert heat.startswith("What was taken for what: 30 labels") and "taken for" in page.cells
    assert (
        page.squares["kind 7 taken for kind 8"]
        == (labels == 7).sum()
        == summary["confused"][0]["num_samples"]
    )
    assert page.squares["kind 3"] == (labels == 3).sum() and "kind 7" not in page.squares

    summary = evaluation_summary("language-modelling", labels, wrong, labels + 1, ())
    record["validation"] = {"loss": 3.0, "accuracy": 0.4, "perplexity": math.exp(3.0)}
    record["data"]["label_names"], record["confusion"] = [], None
    text = report_html("words", {**record, **summary}, records)
    assert "perplexity" in text and "20.1" in text and "Per label" not in text


def test_a_record_without_what_came_later_still_has_a_page(folder):
    record = folder.read_record()
    for key in ("health", "cost", "slices", "confusion"):
        del record[key]
    record["environment"].pop("code")
    page = Page(report_html("old", record, []))
    assert "Health" not in page.headings and "Per label" in page.headings


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "—"), (float("nan"), "—"), (12345, "12,345"), (12345.6, "12,346"), (0.12345, "0.123"), (0.0, "0.000"),
     (1.23456e-5, "1.23e-05"), (674.93, "675"), (True, "True"), ("a", "a"), (["a", 1], "a, 1"), ([], "none")],
)  # fmt: skip
def test_cells(value, shown):
    assert cell(value) == shown


def test_durations():
    assert [duration(s) for s in (3.21, 75, 7500)] == ["3.2 s", "1 min 15 s", "2 h 5 min"]
