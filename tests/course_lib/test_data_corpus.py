"""The docstring corpus: real, masked, without repeats, kept whole."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

from course_lib.data import corpus, load_docstrings
from course_lib.data.texts import Texts, normalise
from tools import extract as extract_module
from tools.extract import Mask, docstrings, extract, extract_all


@pytest.fixture(scope="module")
def texts() -> Texts:
    return load_docstrings(progress=False)


def test_it_is_large_and_has_many_labels(texts):
    counts = np.bincount(texts.labels, minlength=len(texts.label_names))
    assert len(texts) > 30_000
    assert len(texts.label_names) >= 12 and texts.label_names[:2] == ("stdlib", "torch")
    assert counts.min() >= 400


def test_the_label_cannot_be_read_off_a_name(texts):
    together = "\n\n".join(texts.texts)
    folded = together.casefold()
    for name in texts.label_names:
        assert name not in folded, folded[folded.index(name) - 40 :][:90]
    for name in (
        "hugging face",
        "huggingface",
        "prompt toolkit",
        "prompt-toolkit",
        "jupyter",
        "python",
    ):
        assert name not in folded, folded[folded.index(name) - 40 :][:90]
    paths = (
        r"(?<![\w.])(?:np|plt|nx|nn|os|asyncio|collections|stats|pyplot|_orm)\.[a-z]|\bimport (?:np|plt|nx)\b"
    )
    signatures = r"(?im)^\s*:?copyright\b.*team"
    for pattern in (paths, signatures):
        assert not re.findall(pattern, together)[:5]


def test_the_mask_stands_in_for_names_of_every_label(texts):
    masked = np.array(["NAME" in text for text in texts.texts])
    for label, name in enumerate(texts.label_names):
        assert 0.02 < masked[texts.labels == label].mean() < 0.8, name


def test_no_text_occurs_twice_and_none_is_tiny(texts):
    assert len({normalise(text) for text in texts.texts}) == len(texts)
    assert min(len(text.split()) for text in texts.texts) >= 3
    for text in texts.texts:
        text.encode("utf-8")


def test_each_file_has_one_label_and_what_was_left_out_is_reported(texts):
    pairs = {(group, label) for group, label in zip(texts.groups, texts.labels, strict=True)}
    assert len(pairs) == len(np.unique(texts.groups)) > 2000
    for what in ("docstrings", "left out", "more than one label"):
        assert what in " ".join(texts.notes)


def test_it_is_the_same_every_time(texts):
    again = load_docstrings(progress=False)
    assert again.fingerprint == texts.fingerprint == texts.content_fingerprint()
    assert again.texts == texts.texts and again.notes == texts.notes
    assert again.groups.tolist() == texts.groups.tolist()


def test_it_loads_in_under_a_second(texts):
    before = time.process_time()  # reading and parsing is all it does, so the load of others need not count
    load_docstrings()
    assert time.process_time() - before < 1.0


def test_masking():
    mask = Mask(["stats", "optimize"])
    for text, wanted in {
        "Call torch.nn.Linear. Then stop.": "Call NAME. Then stop.",
        ">>> import numpy as np\n>>> np.sum(x)": ">>> import NAME as NAME\n>>> NAME(x)",
        "See PyTorch, SciPy's docs and TORCH_HOME": "See NAME, NAME's docs and NAME",
        ":func:`stats.norm` beats os.path.join(a)": ":func:`NAME` beats NAME(a)",
        "statistics and stats of a string, in time": "statistics and stats of a string, in time",
        "`~matplotlib.axes.Axes`, :class:`_orm.Session`": "`~NAME`, :class:`NAME`",
        "from hf_xet import HfApi on the Hugging  Face Hub": "from NAME import NAME on the NAME Hub",
        "self.x, G.add_edge, e.g. i.e. 3.14": "self.x, G.add_edge, e.g. i.e. 3.14",
        "Lex it.\n\n:copyright: by the team\n:license: BSD\nEnd": "Lex it.\n\nEnd",
        "exp(-x-np.exp(-x)), sympy-style, Prompt-Toolkit": "exp(-x-NAME(-x)), NAME-style, NAME",
        "simple example_mpl": "simple example_mpl",
        "https://numpy.org/doc": "https://NAME/doc",
    }.items():
        assert mask(text) == wanted


def test_masking_long_words_takes_no_time():
    before = time.process_time()
    Mask()("a" * 200_000 + " " + "a." * 100_000 + " " + "-" * 100_000)
    assert time.process_time() - before < 2.0


def test_all_docstrings_of_a_file_in_order_without_running_it(capfd):
    source = b'''"""Module text."""
raise SystemExit("imported!")
class A:
    """Class text."""
    async def f(self):
        """Indented

            text with a bad escape \\d.
        """
if True:
    try:
        pass
    except ValueError:
        def g():
            "Nested text."
    finally:
        def h(): "Last text \\ud800."
    match 1:
        case 1:
            def m(): "Case text."
def without(): return """no docstring"""
x = """no docstring"""
'''
    assert list(docstrings(source)) == [
        "Module text.",
        "Class text.",
        "Indented\n\ntext with a bad escape \\d.",
        "Nested text.",
        "Last text ?.",
        "Case text.",
    ]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "content", [b"def f(:", b"x = '\0'", b"\xff\xfe", b"x = " + b"(" * 5000, b"x = " + b"-" * 500_000 + b"1"]
)
def test_a_file_that_cannot_be_parsed_is_passed_over(tmp_path, content):
    (tmp_path / "bad.py").write_bytes(content)
    assert extract(str(tmp_path / "bad.py"), Mask()) == []
    assert extract(str(tmp_path / "absent.py"), Mask()) == []


def some_files() -> list[Path]:
    return sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:40]


def test_processes_change_nothing_and_may_fail(monkeypatch, tmp_path, capfd):
    (tmp_path / "bad.py").write_text("def f(:")
    paths = [*some_files(), tmp_path / "bad.py", tmp_path / "absent.py"]
    wanted = [extract(str(path), Mask(["stats"])) for path in paths]
    assert wanted[-2:] == [[], []] and sum(map(bool, wanted)) > 20
    assert extract_all(paths, modules=["stats"], progress=True) == wanted
    out, err = capfd.readouterr()
    assert "Reading: 100%" in out and err == "", "a line on stderr costs a notebook cell its points"
    dying = 'import sys; sys.stdin.readline(); print("[0, [", flush=True); sys.exit(3)'
    (tmp_path / "dying.py").write_text(dying)
    for executable in ("/nowhere/to/be/found", sys.executable):
        with monkeypatch.context() as patch:
            patch.setattr(extract_module.sys, "executable", executable)
            if executable == sys.executable:
                patch.setattr(extract_module, "__file__", str(tmp_path / "dying.py"))
            assert extract_all(paths, modules=["stats"], progress=False) == wanted
    assert extract_all([], modules=[], progress=False) == []


def test_an_absent_package_is_left_out_and_named(monkeypatch):
    with monkeypatch.context() as patch:
        packages = {"tornado": "tornado", "nowhere": "no_such_package_here", "pip": "xdist"}
        patch.setattr(corpus, "_PACKAGES", packages)
        texts = corpus.build_docstrings(progress=False)
        key = corpus.corpus_key()
    assert texts.label_names == ("stdlib", "tornado")
    assert "labels left out, not installed or too small: nowhere, pip" in texts.notes
    assert key != corpus.corpus_key()


def test_short_repeated_and_contradictory_texts_are_left_out_and_counted():
    rows = [("a", i, f"a long enough text of number {'x' * i}") for i in range(1, 121)]
    rows += [("b", i, f"another quite different text with {'y' * i}") for i in range(1, 121)]
    rows += [("c", 1, "only one text under label c here")]
    extra = [("a", 500, "too short NAME"), ("a", 501, "A LONG  enough text of number x")]
    extra += [("a", 502, "the very same words in both"), ("b", 503, "the very same words in both")]
    kept, notes = corpus._select(rows + extra)
    assert kept == rows[:-1]
    assert [note[:31] for note in notes] == ["5 of 245 docstrings left out: w"]


def test_a_damaged_cache_is_not_believed(texts, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    path = tmp_path / "docstrings.json"
    fifty = Texts(texts.texts[:50], texts.labels[:50], texts.label_names, texts.groups[:50])
    corpus._cached(path.name, lambda: fifty)
    assert corpus._cached(path.name, lambda: texts).texts == texts.texts[:50]
    whole = path.read_text(encoding="utf-8")
    record = json.loads(whole)
    for damaged in (
        whole[:-100],
        "",
        "[]",
        "{}",
        json.dumps(record | {"labels": [0] * 50, "fingerprint": "0"}),
    ):
        path.write_text(damaged, encoding="utf-8")
        assert corpus._cached(path.name, lambda: fifty) is fifty
        assert path.read_text(encoding="utf-8") == whole, "built and written again"


@pytest.mark.parametrize("stop", [pytest.param("SIGINT", marks=pytest.mark.exhaustive), "SIGKILL"])
def test_an_interrupted_build_leaves_nothing_behind(tmp_path, stop):
    if not hasattr(signal, stop):
        pytest.skip(f"no {stop} here")
    code = "from course_lib.data import load_docstrings; load_docstrings()"
    environment = os.environ | {"COURSE_LIB_CACHE": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.read(20), "the progress bar has begun"
    time.sleep(0.5)
    process.send_signal(getattr(signal, stop))
    process.communicate(timeout=30)  # returns when the worker processes have let go of the pipes too
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
def test_two_processes_may_build_everything_at_once(tmp_path):
    """On two of the packages, so that it takes seconds: corpus, tokenizer, both stores and the index."""
    code = (
        "from course_lib.data import corpus, docstring_store\n"
        "corpus._PACKAGES = {name: name for name in ('pygments', 'tornado')}\n"
        "train, validation = docstring_store(max_length=64, progress=False)\n"
        "print(train.fingerprint, validation.fingerprint, *train.label_names)\n"
    )
    environment = os.environ | {"COURSE_LIB_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0] == answers[1]
    assert answers[0][0].split()[2:] == ["stdlib", "pygments", "tornado"] and answers[0][1] == ""
    kept = sorted(re.sub(r"-[0-9a-f]{20}", "", path.name) for path in tmp_path.iterdir())
    assert kept == ["docstring-store.json", "docstrings.json", "store"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (again.stdout, again.stderr) == answers[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, "found, not built again"
