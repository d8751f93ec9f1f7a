"""A thousand malformed tables and configs: each is refused in one line that helps, and leaves nothing behind."""

import csv
import io
import json
import random
import string

import pytest

from course_lib.cli import main as cli

ALPHABET = string.ascii_letters + string.digits + " äß€漢🙂'\",;|\t\\{}[]#:&*!%@`"


def words(rng, most=8):
    return " ".join(
        "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(1, 9)))
        for _ in range(rng.randint(1, most))
    )


def good_rows(rng):
    return [[words(rng), rng.choice(["yes", "no"])] for _ in range(rng.randint(4, 12))]


def as_csv(header, rows):
    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue().encode()


def no_column(rng):
    """None for the texts or the labels, or several that could be meant."""
    header = rng.choice(
        [["text"], ["label"], ["text", "", ""], ["text", "one", "two"], ["one", "two", "label"]]
    )
    rows = [[text, ["yes", "no"][i % 2], ["no", "yes"][i % 2]] for i, (text, _) in enumerate(good_rows(rng))]
    if header[-1] == "label":
        rows = [[text, text[::-1], label] for text, label, _ in rows]
    return as_csv(header, [row[: len(header)] for row in rows])


def doubled_column(rng):
    return as_csv(["text", "label", rng.choice(["text", "label"])], [[*row, "x"] for row in good_rows(rng)])


def ragged_row(rng):
    rows = good_rows(rng)
    row = rng.choice(rows)
    row[:] = row + ["more"] * rng.randint(1, 3) if rng.random() < 0.5 else row[:1]
    return as_csv(["text", "label"], rows)


def one_label(rng):
    return as_csv(["text", "label"], [[text, "same"] for text, _ in good_rows(rng)])


def nothing_usable(rng):
    return as_csv(["text", "label"], [rng.choice([["", "a"], ["a", ""], [" ", " "]]) for _ in range(5)])


def open_quote(rng):
    data = as_csv(["text", "label"], good_rows(rng))
    lines = data.split(b"\r\n")
    lines[rng.randrange(1, len(lines) - 1)] = b'"never closed,yes'
    return b"\r\n".join(lines)


def bad_bytes(rng):
    data = bytearray(as_csv(["text", "label"], good_rows(rng)))
    data[rng.randrange(len(data)) : 0] = rng.choice(
        [b"\x00", b"\x81", b"\xff\xfe\xff\xfe", b"\xe9 caf\xc3\xa9"]
    )
    return bytes(data)


def foreign(rng):
    magic = rng.choice([b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"%PDF-1.7", b"\x89PNG\r\n"])
    return magic + rng.randbytes(rng.randint(0, 300)) + b"\xff\x00"


def empty(rng):
    return rng.choice([b"", b"\n", b"   \n\n", b"\xef\xbb\xbf", b"text,label\n", b",\n,\n"])


def noise(rng):
    return rng.randbytes(rng.randint(1, 400)) + b"\x00\xff"


def other_text(rng):
    lines = ["".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 60))) for _ in range(6)]
    return "\n".join(lines).encode()


BROKEN_JSON = (
    '{"text": "a"', '["a", "b"]', '{"text": 1, "label": [', "nonsense", "{'text': 'a'}", "\x00"
)  # fmt: skip


def broken_jsonl(rng):
    lines = [json.dumps({"text": words(rng), "label": rng.choice(["yes", "no"])}) for _ in range(6)]
    lines[rng.randrange(len(lines))] = rng.choice(BROKEN_JSON)
    return "\n".join(lines).encode()


TABLES = (
    no_column, doubled_column, ragged_row, one_label, nothing_usable, open_quote, bad_bytes, foreign, empty,
    noise, other_text, broken_jsonl,
)  # fmt: skip


def wrong_value(rng):
    key, values = rng.choice(
        [
            ("max_epochs", [0, -1, 2.5, "many", [], {}, True, 10**30, "1e400"]),
            ("learning_rate", [0, -1, "fast", ".nan", "[1]", True, "1e999"]),
            ("micro_batch_size", [0, -4, "largest", 1.5]),
            ("dropout", [1, 2, -0.1, "none"]),
            ("optimizer", ["adamx", 3, "", "AdamW "]),
            ("schedule", ["cosin", "[]"]),
            ("precision", ["fp8", 16, "bf16"]),
            ("num_heads", [3, 0, "four"]),
            ("validation", [0, 1, 1.2, "half"]),
            ("vocab_size", [10, -1, "big"]),
            ("seed", [-1, 2**40, "x", 1.5]),
            ("device", ["gpu", "cuda:99", "", "tpu"]),
            ("monitor", ["f1", 2]),
            ("budget", [5]),  # without a price
            ("use_low_bit_base", [True]),  # without adapters
            ("task", ["regressions", "multi_label"]),
            ("has_header", ["perhaps", 2]),
            ("encoding", ["utf-9", "rot13", 8]),
            ("label_column", ["nowhere"]),
            ("validation_data", ["/nowhere.csv"]),
            ("is_deterministic", ["maybe", 1, "0"]),
            ("hf_model", ["/nowhere/at/all"]),
            ("trackers", ["tensorflow"]),
        ]
    )
    return f"{key}: {rng.choice(values)}\n"


def unknown_key(rng):
    return f"{words(rng, 1)}_x: {rng.randint(0, 9)}\n"


def not_a_mapping(rng):
    return rng.choice(["- a\n- b\n", "just text\n", "42\n", "[1, 2]\n", "true\n", "2024-01-01\n"])


def broken_yaml(rng):
    return rng.choice(
        ["a: b: c\n", "max_epochs: [1\n", "\tmax_epochs: 2\n", "'open\n", "? ? ?\n- : {", "&a *b\n",
         "!!python/object:os.system x\n",
         "max_epochs: 1\n max_steps: 2\n", "%YAML 9\n", "{" * rng.randint(1, 2000), "date: 2024-99-99\n"]
    )  # fmt: skip


def noisy_yaml(rng):
    return "seed: {" + "".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 80))) + "\x01\n"


CONFIGS = (wrong_value, unknown_key, not_a_mapping, broken_yaml, noisy_yaml)


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def check(arguments, case):
        before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        try:
            code = cli.main(["train", *arguments, "--out", "run"])
        except SystemExit as stop:
            code = stop.code
        stdout, stderr = capsys.readouterr()
        assert code == 2, f"{case}: exit {code}; {stdout}{stderr}"
        assert stdout == "", case
        assert stderr.count("\n") == 1, f"{case}: {stderr}"
        assert stderr.startswith("course-lib: "), f"{case}: {stderr}"
        assert "fault of course-lib" not in stderr, f"{case}: {stderr}"
        assert len(stderr) < 700, f"{case}: {stderr}"
        assert not (tmp_path / "run").exists(), case
        after = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        assert after == before, case

    return check


@pytest.mark.parametrize("make", TABLES)
def test_malformed_tables(make, tmp_path, refused):
    rng = random.Random(make.__name__)
    path = tmp_path / ("data.jsonl" if make is broken_jsonl else "data.csv")
    for _ in range(50):
        data = make(rng)
        path.write_bytes(data)
        refused(["--data", str(path), "--set", "max_steps=1"], f"{make.__name__}: {data[:200]!r}")


@pytest.mark.parametrize("make", CONFIGS)
def test_malformed_configs(make, tmp_path, refused):
    rng = random.Random(make.__name__)
    table, config = tmp_path / "good.csv", tmp_path / "config.yaml"
    table.write_bytes(as_csv(["text", "label"], good_rows(rng)))
    for _ in range(90):
        text = make(rng)
        config.write_text(text, encoding="utf-8")
        refused(["--data", str(table), "--config", str(config)], f"{make.__name__}: {text[:200]!r}")
