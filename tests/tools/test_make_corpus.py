"""How the built-in corpus is made: what is extracted, masked and left out; and that it makes what ships."""

from __future__ import annotations

import json
import time
import zipfile

import pytest

from course_lib.data import corpus
from tools import make_corpus
from tools.corpus_licences import SPDX, copyright_lines
from tools.extract import ROLES, Mask, docstrings, extract, labelled_words

SOURCE = """import os
@dec.orate(x)
def f(a, b: int = g(1, c), *args, **kw) -> str:
    "Doc."
    self.x = obj.call(a, key=b)  # note
class A(Base):
    async def m(self): return await self.m(3.0) + f"{a}"
"""


def pieces_of(tmp_path, source):
    path = tmp_path / "some.py"
    path.write_text(source, encoding="utf-8")
    return labelled_words(str(path))


def test_each_word_gets_its_role(tmp_path):
    pieces = pieces_of(tmp_path, SOURCE)
    assert [words[0] for words, _ in pieces] == ["import", "def", "class", "def"]
    found = [(word, ROLES[role]) for words, roles in pieces for word, role in zip(words, roles, strict=True)]
    of = {role: [word for word, other in found if other == role] for role in ROLES}
    assert of["keyword"] == ["import", "def", "class", "async", "def", "return", "await"]
    assert (of["function"], of["class"]) == (["f", "m"], ["A"])
    assert of["call"] == ["orate", "g", "call", "m"] and of["attribute"] == ["x"]
    names = ["os", "dec", "x", "a", "b", "int", "c", "args", "kw", "str", "self", "obj", "a", "key", "b"]
    names += ["Base", "self", "self"]
    assert [word for word in of["name"] if word != "a"] == [word for word in names if word != "a"]
    assert of["number"] == ["1", "3.0"] and of["comment"] == ["# note"] and '"Doc."' in of["string"]


@pytest.mark.parametrize("source", ["def f(:\n  x = (", "x = '\0'", "if x:\n y\n  z\n"])
def test_a_file_that_cannot_be_tokenised_does_no_harm(tmp_path, source):
    assert isinstance(pieces_of(tmp_path, source), list)
    assert labelled_words(str(tmp_path / "absent.py")) == pieces_of(tmp_path, "") == []


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


def test_a_package_that_is_absent_or_too_small_is_named():
    labels = ("tornado", "no_such_package_here", "xdist")
    with pytest.raises(
        SystemExit, match=r"too few docstrings of no_such_package_here, xdist: .*constraints\.txt"
    ):
        make_corpus.build_docstrings(labels)


def test_short_repeated_and_contradictory_texts_are_left_out_and_counted():
    rows = [("a", i, f"a long enough text of number {'x' * i}") for i in range(1, 121)]
    rows += [("b", i, f"another quite different text with {'y' * i}") for i in range(1, 121)]
    rows += [("c", 1, "only one text under label c here")]
    extra = [("a", 500, "too short NAME"), ("a", 501, "A LONG  enough text of number x")]
    extra += [("a", 502, "the very same words in both"), ("b", 503, "the very same words in both")]
    kept, notes = make_corpus.select(rows + extra)
    assert kept == rows[:-1]
    assert [note[:31] for note in notes] == ["5 of 245 docstrings left out: w"]


def test_each_copyright_line_is_kept_once_without_the_signs_around_it():
    texts = [
        "# Copyright (c) 2001  Some Body.  \n#\n# not about a copyright\nx = 1\n",
        '"""    Copyright (C) 2002 Another\n:copyright: Copyright 2003 by a Team."""\n# copyright (c) 2001 some body.',
        "'copyright' : 'U000000a9',\ncopyright_2001 = 1\n (c) Copyright 1999 Third",
    ]
    assert copyright_lines(texts) == [
        "Copyright (c) 2001 Some Body.",
        "Copyright (C) 2002 Another",
        "copyright: Copyright 2003 by a Team.",
        "(c) Copyright 1999 Third",
    ]
    assert tuple(SPDX) == make_corpus.LABELS


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_same_versions_give_the_files_that_ship(tmp_path):
    with zipfile.ZipFile(corpus.CORPUS) as shipped:
        if make_corpus.versions() != json.loads(shipped.read("versions.json")):
            pytest.skip("other versions are installed than the corpus was made from")
        make_corpus.main(tmp_path)
        with zipfile.ZipFile(tmp_path / "corpus.zip") as made:
            for name in shipped.namelist():  # not the file's own bytes: another lzma may compress differently
                assert made.read(name) == shipped.read(name), name
    licences = (tmp_path / "corpus_licences.txt").read_bytes()
    assert licences == corpus.CORPUS.with_name("corpus_licences.txt").read_bytes()
