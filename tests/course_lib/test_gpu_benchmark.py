"""The benchmark for a GPU without one: every line that needs none is run, with torch and NumPy alone."""

import copy
import json
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import DeviceType

from course_lib.training import checkpoint, resolve_precision
from tests.benchmarks.gpu import (
    attention,
    auto_batch,
    children,
    correctness,
    fsdp,
    nvml,
    saving,
    syncs,
    throughput,
    transfer,
)
from tests.benchmarks.gpu.__main__ import main
from tests.benchmarks.gpu.lines import Found, Line, NotHere, Row, judge, markdown
from tests.benchmarks.gpu.setting import Setting, small_model, texts
from tests.benchmarks.gpu.traces import merged, overlap
from tests.course_lib.alone import Alone

ROOT = Path(__file__).parents[2]
QUICK = Setting(torch.device("cpu"), is_quick=True)
ALL_PARTS = """
import json
import torch
from tests.benchmarks.gpu.children import PARTS, lines_of
from tests.benchmarks.gpu.lines import judge
from tests.benchmarks.gpu.setting import Setting

setting = Setting(torch.device("cpu"), is_quick=True)
rows = [row.to_dict() for name in PARTS for row in judge(name, lines_of(name, setting))]
print(json.dumps(rows))
"""
NOT_ON_A_CPU = {"needs CUDA", "left out by --quick", "needs psutil", "needs CUDA, or Linux"}
TIMED = {"the loop waits: asynchronous / synchronous save"}
"""What a busy machine may upset."""


@pytest.mark.slow
@pytest.mark.everyday
def test_all_that_needs_no_gpu_runs_and_passes_with_torch_and_numpy_alone(tmp_path):
    done = Alone(tmp_path / "env").run("-c", ALL_PARTS, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert {row["part"] for row in rows} == {*children.PARTS}
    assert all(row["what"] and row["criterion"] for row in rows)
    assert len({(row["part"], row["what"]) for row in rows}) == len(rows)
    tried = [row for row in rows if not row["verdict"].startswith("not run: ")]
    assert {row["verdict"].removeprefix("not run: ") for row in rows if row not in tried} <= NOT_ON_A_CPU
    assert [row for row in tried if row["verdict"] != "pass" and row["what"] not in TIMED] == []
    assert {row["part"] for row in tried} == {*children.PARTS} - {"transfer", "nvml"}
    assert len(tried) >= 25


@pytest.mark.further
def test_the_command_writes_a_table_and_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = tmp_path / "gpu.json"
    asked = ["--parts", "transfer", "auto_batch", "--quick", "--device", "cpu", "--seconds", "6000"]
    assert main([*asked, "--out", str(path)]) == 0
    report, page = json.loads(path.read_text()), capsys.readouterr().out
    assert report["versions"]["torch"] == torch.__version__
    assert report["device"]["cores"] and report["seconds"] > 0 and report["made"]
    assert [row["part"] for row in report["rows"]] == ["transfer"] * 3 + ["auto_batch"] * 2
    assert page == markdown(report) + "\n"
    assert "5 lines: 4 not run, 1 pass." in page
    assert main(["--parts", "nvml", "--device", "cuda:99", "--out", str(path)]) == 1
    (row,) = json.loads(path.read_text())["rows"]
    assert row["verdict"].startswith("failed: UserError: device 'cuda:99' is not on this machine")


def test_a_line_that_fails_is_a_row_and_the_rest_goes_on(capsys):
    def fails():
        raise RuntimeError("CUDA error: an illegal memory access\nwas encountered")

    def lacks():
        raise NotHere("needs a compiler")

    lines = [
        Line("a", "≤ 1", fails),
        Line("b", "≤ 1", lacks),
        Line("c", "≤ 1", lambda: Found(False, "2", {"value": 2})),
        Line("d", "≤ 1", lambda: Found(True, "1 | 2", {"value": 1})),
        Line("e", "≤ 1", fails, needs="needs CUDA"),
    ]
    rows = list(judge("part", lines))
    failed = f"failed: RuntimeError: CUDA error: an illegal memory access ({Path(__file__).name}:"
    assert rows[0].verdict.startswith(failed) and rows[0].criterion == "≤ 1"
    assert [row.verdict for row in rows[1:]] == [
        *("not run: needs a compiler", "fail", "pass", "not run: needs CUDA")
    ]
    assert rows[2].numbers == {"value": 2}
    assert "was encountered" in capsys.readouterr().err
    report = {"device": {"GPU": "A"}, "versions": {"torch": "2"}, "seconds": 3.0}
    page = markdown(report | {"rows": [row.to_dict() for row in rows]})
    assert page.startswith("GPU A; torch 2; 3 s.\n")
    assert "| part | d | 1 \\| 2 | ≤ 1 | pass |" in page
    assert page.endswith("5 lines: 1 failed, 2 not run, 1 fail, 1 pass.\n")


def test_a_part_that_cannot_be_loaded_is_a_row(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tests.benchmarks.gpu.nvml", None)
    children.tell("nvml", "cpu", True, tmp_path / "report.jsonl")
    described, (row,) = children._read("nvml", tmp_path / "report.jsonl", "")
    assert described["versions"]["torch"] == torch.__version__
    assert row.verdict.startswith("failed: ModuleNotFoundError: ")


def test_what_a_stopped_part_has_told_stays(tmp_path):
    path = tmp_path / "report.jsonl"
    done = Row("part", "a", "≤ 1", "pass", "0", {})
    plan = {"plan": [("a", "≤ 1"), ("b", "≤ 2"), ("c", "≤ 3")], "device": {}, "versions": {"torch": "2"}}
    path.write_text(f"{json.dumps(plan)}\n{json.dumps(done.to_dict())}\n")
    described, rows = children._read("part", path, "over its 3 s")
    assert described == {"device": {}, "versions": {"torch": "2"}}
    assert rows[0] == done
    assert [(row.what, row.criterion, row.verdict) for row in rows[1:]] == [
        ("b", "≤ 2", "failed: over its 3 s"),
        ("c", "≤ 3", "not run: over its 3 s"),
    ]
    _, (nothing,) = children._read("part", tmp_path / "none", "the process ended with code -11")
    assert nothing.verdict == "failed: the process ended with code -11"


def test_a_part_that_hangs_is_ended(monkeypatch):
    monkeypatch.chdir(ROOT)
    start = time.monotonic()
    report = children.run_parts(["nvml", "saving"], ["--device", "cpu", "--quick"], 0.01)
    assert time.monotonic() - start < 60
    assert [row["verdict"] for row in report["rows"]] == ["failed: over its 0 s"] * 2


@given(*[st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)).map(lambda x: (x[0], x[0] + x[1])))] * 2)
def test_overlap_is_the_time_in_which_both_go_on(some, others):
    def moments(intervals):
        return {moment for begin, end in intervals for moment in range(begin, end)}

    assert overlap(some, others) == len(moments(some) & moments(others))
    assert sum(end - begin for begin, end in merged(some)) == len(moments(some))


def test_rows_are_halved_until_they_fit():
    tried = []

    def run(rows):
        tried.append(rows)
        if rows > 10:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "fits"

    assert throughput.as_many_as_fit(64, run) == (8, "fits")
    assert tried == [64, 32, 16, 8]
    with pytest.raises(torch.OutOfMemoryError):
        throughput.as_many_as_fit(2, lambda rows: run(99))


@pytest.mark.further
def test_another_program_holds_memory_until_it_is_told_to_end(monkeypatch):
    monkeypatch.chdir(ROOT)
    with auto_batch.held(torch.device("cpu"), 1000):
        pass
    with (
        pytest.raises(AssertionError, match="the other program said b''"),
        auto_batch.held(torch.device("cpu"), -1),
    ):
        pass


def test_texts_are_the_same_each_time_and_labels_of_a_language_are_the_next_tokens():
    (one,), (other,) = (texts(1, rows=3, width=8, is_language=True) for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    for ids, mask, labels in zip(*(one[name].tolist() for name in one), strict=True):
        length = sum(mask)
        assert labels == [*ids[1:length], *[-100] * (9 - length)]


# Each kind of line has a mistake that it must see.


def test_a_step_that_reads_a_loss_is_seen(monkeypatch):
    def reads(model, batch):
        total, items = correctness.mean_over_rows(model, batch)
        float(total.detach())
        return total, items

    monkeypatch.setitem(syncs.CASES, "32-true, reads", {"loss": reads})
    found = syncs._steps(QUICK, "32-true, reads", 4)
    assert (found.passed, found.numbers["num_syncs"]) == (False, 4)


def test_a_loss_of_another_scale_is_seen(monkeypatch):
    def mean_of_means(model, batch):
        total, items = right(model, batch)
        return total / items, 1

    right = correctness.mean_over_rows
    monkeypatch.setattr(correctness, "mean_over_rows", mean_of_means)
    assert not correctness._accumulated(QUICK, True).passed


def test_a_run_that_forgets_its_generators_is_seen(monkeypatch):
    restore = correctness.restore

    def forgets(checkpoint, **parts):
        drawn = torch.get_rng_state()
        state = restore(checkpoint, **parts)
        torch.set_rng_state(drawn)
        return state

    assert correctness._resumed(QUICK, "32-true").text == "again: the same; stopped: the same"
    monkeypatch.setattr(correctness, "restore", forgets)
    found = correctness._resumed(QUICK, "32-true")
    assert (found.passed, found.text) == (False, "again: the same; stopped: others")
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_step_that_is_not_skipped_is_seen(monkeypatch):
    monkeypatch.setattr(torch.amp.GradScaler, "step", lambda self, optimizer: optimizer.step())
    found = correctness._overflow(QUICK)
    assert not found.passed and found.text.startswith("stays: False")


def test_a_step_on_another_batch_is_seen_under_fsdp(monkeypatch):
    monkeypatch.setattr(fsdp, "texts", lambda *args, **sizes: texts(*args, **sizes)[::-1])
    before = fsdp._train
    monkeypatch.setattr(
        fsdp,
        "_train",
        lambda *args: before(*args) if hasattr(args[1].head.weight, "full_tensor") else [1.0] * 10,
    )
    assert not fsdp._as_plain(QUICK, {}, 1e-5).passed
    assert not torch.distributed.is_initialized()


def test_a_matrix_of_attention_is_seen():
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = attention._kernels(QUICK, "classification", "32-true")
    assert not found.passed


def test_a_size_that_is_not_the_largest_is_seen(monkeypatch):
    monkeypatch.setattr(auto_batch, "largest_micro_batch_size", lambda *_, **__: (2, "a guess"))
    assert not auto_batch._largest(QUICK, 4_000_000).passed


def test_a_save_without_a_copy_is_seen(monkeypatch):
    steps, save, step = [], checkpoint.save_checkpoint, saving.Trained.step

    def counted(trained):
        step(trained)
        steps.append(trained)

    def late(*arguments):
        while len(steps) < 6:
            time.sleep(0.01)
        save(*arguments)

    monkeypatch.setattr(saving.Trained, "step", counted)
    monkeypatch.setattr(checkpoint, "save_checkpoint", late)
    assert saving._moment(QUICK).passed
    steps.clear()
    monkeypatch.setattr(copy, "deepcopy", lambda saved: saved)
    assert not saving._moment(QUICK).passed


def test_a_step_on_images_is_timed():
    for is_there in (False, True):
        seconds, num_bytes = transfer.step_time(QUICK, is_there=is_there, num_steps=3)
        assert seconds > 0 and num_bytes == 0


# What only a GPU can do is done by the CPU, under the GPU's name: the code around it must at least run.


class Pretended(Setting):
    is_cuda = True

    def fastest_precision(self):
        return resolve_precision("32-true", self.device)


@pytest.fixture
def pretended(monkeypatch):
    monkeypatch.chdir(ROOT)
    allocated = iter(range(0, 10**12, 10**9))
    names = ("synchronize", "set_sync_debug_mode", "reset_peak_memory_stats", "empty_cache")
    for name in names:
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: next(allocated))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (10**6, 10**7))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(attention, "has_bf16_units", lambda _: True)
    monkeypatch.setattr(transfer, "COPY_BYTES", 4000)
    monkeypatch.setattr(nvml, "readings", lambda _: {"gpu_memory_bytes": float(next(allocated))})
    monkeypatch.setattr(throughput, "SIZES", dict.fromkeys(throughput.SIZES, throughput.QUICK["small"]))
    monkeypatch.setattr(throughput, "QUICK", throughput.SIZES)
    monkeypatch.setattr(auto_batch, "_of_width", lambda _: lambda size: texts(1, size, 8)[0])
    monkeypatch.setattr(auto_batch, "small_model", lambda device, **_: small_model(device))
    monkeypatch.setattr(fsdp.dist, "init_process_group", of_gloo(fsdp.dist.init_process_group))
    return Pretended(torch.device("cpu"), is_quick=True)


def of_gloo(begin):
    return lambda _backend, **how: begin("gloo", **how)


@pytest.mark.further
@pytest.mark.parametrize("part", children.PARTS)
def test_every_line_runs_to_its_end_on_a_pretended_gpu(pretended, part, monkeypatch):
    kernels = [("Memcpy HtoD (Pinned -> Device)", 0, 10), ("gemm", 4, 20), ("flash_fwd_kernel<1>", 20, 30)]
    events = [
        SimpleNamespace(
            name=name,
            device_type=DeviceType.CUDA,
            is_user_annotation=False,
            time_range=SimpleNamespace(start=begin, end=end),
        )
        for name, begin, end in kernels
    ]
    as_it_is = attention.profiled
    for module in (attention, transfer):
        monkeypatch.setattr(module, "profiled", lambda _, work: [*as_it_is(QUICK, work), *events])
    rows = list(judge(part, children.lines_of(part, pretended)))
    assert [row for row in rows if row.verdict.startswith("failed")] == []
    not_run = {row.verdict.partition(";")[0] for row in rows if row.verdict.startswith("not run")}
    assert not_run <= {"not run: left out by --quick", "not run: needs a GPU whose data sheet is known"}
    if part == "transfer":
        assert rows[1].numbers["hidden_share"] == 0.6 and rows[1].verdict == "fail"
    if part == "attention":
        assert rows[0].found == "flash: `flash_fwd_kernel`; 33% of the time"


def test_syncs_are_counted_by_the_warnings_of_torch(pretended):
    model = small_model(pretended.device)
    with syncs.counted(pretended, model) as found:
        for text in (
            "called a synchronizing CUDA operation",
            "called a synchronizing CUDA operation",
            "other",
        ):
            warnings.warn(text, stacklevel=1)
    assert found == [2]
