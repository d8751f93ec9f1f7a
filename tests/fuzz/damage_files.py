"""What else lies in the folder: the time of the hand-in, notebooks of any name and number, links, pipes, depths."""

from __future__ import annotations

import random
from functools import partial

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.hand_in import HandIn, Link, Pipe

TIMES: dict[str, bytes] = {
    "nothing": b"",
    "words": b"yesterday evening",
    "bytes": bytes(range(256)),
    "utf-16": "2027-02-01 12:00:00 UTC".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf2027-02-01 12:00:00 UTC",
    "several lines": b"2027-02-01\n12:00:00\nUTC\n",
    "the thirteenth month": b"2027-13-45 99:99:99 UTC",
    "the year 0": b"0000-00-00 00:00:00 UTC",
    "the year 1": b"0001-01-01 00:00:00 +14:00",
    "the year 9999": b"9999-12-31 23:59:59 -12:00",
    "a year of 5,000 digits": b"9" * 5000,
    "a number": b"1e999",
    "another zone": b"2027-02-01 12:00:00 XYZ",
    "a zone too far": b"2027-02-01 12:00:00 +99:99",
    "a zone of many digits": b"2027-02-01 12:00:00 +" + b"9" * 400,
    "no zone": b"2027-02-01 12:00:00",
    "late": b"2037-02-01 12:00:00 UTC",
    "another country's": "1 février 2027, 12 h".encode(),
    "control characters": b"\x1b[2J\x00\x07\n  z-sound: 0\n",
    "a megabyte of numbers": b"1 " * 500_000,
    "a megabyte of letters": b"a" * 1_000_000,
    "a megabyte of dots": b"." * 1_000_000,
    "20 MB": b"2027-02-01 12:00:00 UTC" + b" " * 20_000_000,
    "a page": b"<script>alert(1)</script>",
    "JSON": b'{"time": [[[]]]}',
}


def _stamp(hand_in: HandIn, chance: random.Random, data: bytes) -> None:
    hand_in.files["timestamp.txt"] = data


_CASES: dict[str, Change] = {name: partial(_stamp, data=data) for name, data in TIMES.items()}
register_each("file", "timestamp.txt holds", _CASES, weight=2)


@damage("file", weight=4)
def the_timestamp_is_no_file(hand_in: HandIn, chance: random.Random) -> None:
    others: list[Link | Pipe | None] = [
        Link("../../z-sound/timestamp.txt"),
        Link("/dev/zero"),
        Link("timestamp.txt"),
        Pipe(),
        None,
    ]
    hand_in.files[chance.choice(["timestamp.txt", "submission_secret.txt"])] = chance.choice(others)


@damage("file", weight=15)
def the_timestamp_is_of_any_words(hand_in: HandIn, chance: random.Random) -> None:
    words = [
        "2027",
        "-",
        "02",
        "31",
        "12:",
        "00",
        ".",
        "UTC",
        "+",
        "Z",
        "T",
        "am",
        "Feb",
        "Mon",
        " ",
        "99999999999",
        "\x00",
    ]
    hand_in.files["timestamp.txt"] = "".join(chance.choices(words, k=chance.choice([4, 8, 30, 500]))).encode()


NAMES = (
    "{stem}.IPYNB", "{stem}.Ipynb", "{stem}.ipynb.txt", "{stem}.ipynb.ipynb", "{stem} (1).ipynb",
    "{stem}.json", "{stem}", "{upper}.ipynb", ".{stem}.ipynb", ".ipynb", "-.ipynb", "--help.ipynb",
    "{stem}.ipynb ", " {stem}.ipynb", "{stem}..ipynb", "{stem}-checkpoint.ipynb", "sub/{stem}.ipynb",
    ".ipynb_checkpoints/{stem}.ipynb", "__MACOSX/._{stem}.ipynb", "a/b/c/d/e/f/{stem}.ipynb",
    "Untitled.ipynb", "01_efficient_training_loops.ipynb", "курс.ipynb", "課程 😀.ipynb", "n\udcff.ipynb",
    "\x1b[2J\x07{stem}.ipynb", "{stem}\n  z-sound: error: no grade.ipynb", "\x9b31m.ipynb",
    "\u202e{stem}.ipynb", "*.ipynb", "[a-z].ipynb", "{{student_id}}.ipynb", "%s%n.ipynb", "<b>{stem}.ipynb",
    "$(id).ipynb", "'; --.ipynb", "{long}.ipynb", "\\..\\{stem}.ipynb", "CON.ipynb", "# head.ipynb",
    "![](x).ipynb", "{stem}.ipynb\r", "\t.ipynb",
)  # fmt: skip


def _name(hand_in: HandIn, chance: random.Random, new: str) -> None:
    stem = hand_in.folder
    hand_in.rename(hand_in.notebook, new.format(stem=stem, upper=stem.upper(), long="n" * 245))


register_each(
    "file", "the notebook is called", {ascii(name): partial(_name, new=name) for name in NAMES}, weight=2
)


@damage("file", weight=5)
def several_notebooks(hand_in: HandIn, chance: random.Random) -> None:
    data = hand_in.bytes_of(hand_in.notebook)
    for number in range(chance.choice([1, 2, 2, 40, 400])):
        content = chance.choice(
            [data, data[: len(data) // 2], b"", b"{}", data.replace(b"exercise", b"exercises")]
        )
        hand_in.files[f"{chance.choice(['a', 'z', 'sub/'])}{number}.ipynb"] = content


@damage("file", weight=3)
def no_notebook(hand_in: HandIn, chance: random.Random) -> None:
    hand_in.files.pop(hand_in.notebook, None)


@damage("file", weight=2)
def nothing_at_all(hand_in: HandIn, chance: random.Random) -> None:
    hand_in.files.clear()


@damage("file", weight=8)
def the_notebook_is_no_file(hand_in: HandIn, chance: random.Random) -> None:
    sound = f"../../z-sound/{hand_in.folder}/{hand_in.folder}.ipynb"
    others: list[Link | Pipe | None] = [
        Link(sound),
        Link("/dev/zero"),
        Link("/proc/self/mem"),
        Link(hand_in.notebook),
        Link("nowhere"),
        Pipe(),
        None,
    ]
    hand_in.files[hand_in.notebook] = chance.choice(others)
    if chance.random() < 0.5:
        hand_in.files.pop(hand_in.answers, None)
        hand_in.may_earn = False


@damage("file", weight=5)
def links_to_other_folders(hand_in: HandIn, chance: random.Random) -> None:
    """Beside a notebook of their own, or in its place."""
    if chance.random() < 0.5:
        hand_in.files.clear()
        hand_in.may_earn = False
    targets = [
        "/",
        ".",
        "..",
        "../..",
        "../../z-sound",
        f"../../z-sound/{hand_in.folder}",
        "/proc/self",
        "/dev",
        "nowhere",
    ]
    for number, target in enumerate(chance.sample(targets, chance.randint(1, 5))):
        hand_in.files[f"link {number}"] = Link(target)


@damage("file", weight=4)
def a_pipe_beside(hand_in: HandIn, chance: random.Random) -> None:
    hand_in.files[chance.choice(["a.ipynb", "my_answers.json", "data.csv", "nbgrader_config.py"])] = Pipe()


@damage("file", weight=4)
def folders_deep_down(hand_in: HandIn, chance: random.Random) -> None:
    """Deeper than a stack, or than a path may be long."""
    parts = chance.choice([["d" * 40] * 60, ["d" * 200] * 30, ["d"] * 1200, ["d"] * 3000])
    last = chance.choice(["a.ipynb", "a.txt", "x_answers.json"])
    hand_in.files["/".join([*parts, last])] = hand_in.bytes_of(hand_in.notebook)


@damage("file", weight=3)
def thousands_of_files(hand_in: HandIn, chance: random.Random) -> None:
    name = chance.choice(["{}.txt", "{0}/{0}.txt", "{}.py", "{}\n.txt"])
    hand_in.files.update({name.format(number): b"x" for number in range(3000)})


@damage("file", weight=10)
def files_with_a_meaning(hand_in: HandIn, chance: random.Random) -> None:
    """For Python, nbgrader, Jupyter or the course, if they were taken from here."""
    names = [
        "nbgrader_config.py",
        "sitecustomize.py",
        "json.py",
        "conftest.py",
        "pyproject.toml",
        "jupyter_config.json",
    ]
    names += [
        "gradebook.db",
        "submission_secret.txt",
        ".workbook/results/x.json",
        f"{hand_in.folder}_quiz.json",
        "__init__.py",
    ]
    names += [
        "late_rules.py",
        ".git/config",
        f"{hand_in.folder}.html",
        "autograded",
        "release",
        "nbformat.py",
    ]
    for name in chance.sample(names, chance.randint(1, 6)):
        hand_in.files[name] = chance.choice([b"raise SystemExit(3)\n", b"\xff\xfe\x00", b"", b"{" * 50_000])


@damage("file", weight=4)
def files_with_odd_names(hand_in: HandIn, chance: random.Random) -> None:
    for name in (
        "\x1b[2J",
        "a\nb",
        "\udcfe\udcff",
        "n" * 255,
        "-rf",
        "~",
        "$HOME",
        "*",
        "\u202e",
        " ",
        "...",
        "\\",
    ):
        hand_in.files[name] = b"x"
