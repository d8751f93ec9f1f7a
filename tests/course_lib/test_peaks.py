"""What a device can do at most: by the data sheet of its name, in the format of the run; GPUs by faked names."""

from types import SimpleNamespace

import pytest
import torch

from course_lib.runs.watching import peaks
from course_lib.runs.watching.peaks import DATA_SHEETS, data_sheet, data_sheet_peak, peak_flops
from course_lib.training.precision import Precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
TF32 = Precision("tf32-mixed", "asked for")
H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-40GB"


@pytest.fixture
def gpu(monkeypatch):
    """Makes torch speak of a GPU that is not there."""

    def make(name, *, major=8, sms=0):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, 0))
        properties = SimpleNamespace(multi_processor_count=sms)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)

    return make


@pytest.mark.parametrize(
    ("name", "bf16", "fp32"),
    [
        (H200, 989.4, 67),
        ("NVIDIA H200 NVL", 835.5, 60),
        ("NVIDIA GH200 480GB", 989.4, 67),
        ("NVIDIA H100 80GB HBM3", 989.4, 67),
        ("NVIDIA H100 PCIe", 756, 51.2),
        ("NVIDIA H100 NVL", 835.5, 60),
        ("NVIDIA B200", 2250, 75),
        (A100, 312, 19.5),
        ("NVIDIA A100 80GB PCIe", 312, 19.5),
        ("NVIDIA A10G", 70, 35),
        ("NVIDIA A10", 125, 31.2),
        ("NVIDIA RTX A6000", 154.8, 38.7),
        ("NVIDIA L40S", 362, 91.6),
        ("NVIDIA L40", 181, 90.5),
        ("NVIDIA L4", 121, 30.3),
        ("NVIDIA RTX 6000 Ada Generation", 364.2, 91.1),
        ("NVIDIA GeForce RTX 4090", 165.2, 82.6),
        ("Tesla T4", None, 8.1),
        ("Tesla V100-SXM2-16GB", None, 15.7),
        ("Tesla V100-PCIE-32GB", None, 14),
        ("Tesla V100S-PCIE-32GB", None, 16.4),
    ],
)
def test_the_peaks_of_a_name_are_those_of_its_data_sheet(name, bf16, fp32):
    assert data_sheet_peak(name) == (bf16 and bf16 * 1e12)
    assert data_sheet_peak(name, "float32") == fp32 * 1e12


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA GeForce RTX 9999", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        *("NVIDIA GeForce RTX 3090 Ti", "GRID A100-10C", "NVIDIA A10-24Q", "GRID T4-16Q", "NVIDIA L400"),
    ],
)
def test_no_figure_is_invented_for_another_gpu_or_a_share_of_one(name):
    assert data_sheet(name) is None and data_sheet_peak(name) is None


def test_the_figures_are_dense_and_go_together():
    for sheet in DATA_SHEETS:
        assert sheet.url.startswith("https://") and "nvidia" in sheet.url.lower()
        assert sheet.float32 < sheet.float16
        if sheet.bfloat16 is None:
            assert sheet.tf32 is None  # both came with Ampere
        else:
            assert sheet.bfloat16 == sheet.float16
            assert sheet.tf32 == pytest.approx(sheet.bfloat16 / 2, rel=0.03)


def test_a_run_is_divided_by_the_peak_of_the_format_that_it_computes_in(gpu):
    gpu(A100)
    assert peak_flops(GPU, torch.bfloat16)[0] == 312e12
    assert peak_flops(GPU, torch.float16, world_size=8)[0] == 8 * 312e12
    peak, source = peak_flops(GPU, torch.float32)
    assert peak == 19.5e12
    assert source.startswith(f"data sheet: dense float32 of {A100} (https://") and source.endswith(".pdf)")
    with TF32.products():
        peak, source = peak_flops(GPU, torch.float32)
    assert peak == 156e12 and "dense tf32" in source


def test_emulated_bf16_is_never_a_peak(gpu, monkeypatch):
    gpu("Tesla T4", major=7)
    with TF32.products():  # has no effect there
        assert peak_flops(GPU, torch.float32)[0] == 8.1e12
    peak, source = peak_flops(GPU, torch.bfloat16)
    assert peak == 65e12 and "dense float16 of Tesla T4, for bf16 is emulated" in source
    measured = []
    monkeypatch.setattr(peaks, "_measured_peak", lambda device, dtype, *_: (measured.append(dtype), 1e12)[1])
    gpu("Quadro Something", major=7)
    peak, source = peak_flops(GPU, torch.bfloat16, world_size=2)
    assert (peak, measured) == (2e12, [torch.float16])
    assert source.startswith("measured: ") and "float16" in source and "emulated" in source
    gpu("Something New", major=13)
    assert peak_flops(GPU, torch.bfloat16)[1].startswith("measured: the fastest of several bfloat16")
    assert measured[-1] == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "sms", "of"), [(f"{H200} MIG 1g.18gb", 16, 132), (f"{A100} MIG 3g.20gb", 42, 108)]
)
def test_a_mig_slice_does_its_share(gpu, name, sms, of):
    gpu(name, sms=sms)
    peak, source = peak_flops(GPU, torch.bfloat16)
    assert peak == pytest.approx(data_sheet_peak(name) * sms / of)
    assert f"dense bfloat16 of {name}, {sms} of {of} multiprocessors (https://" in source


def test_a_slice_of_a_gpu_whose_size_is_not_known_is_measured(gpu, monkeypatch):
    monkeypatch.setattr(peaks, "_measured_peak", lambda *_: 3e12)
    gpu("NVIDIA L4 MIG 1g.6gb", sms=10)
    peak, source = peak_flops(GPU, torch.bfloat16)
    assert peak == 3e12 and source.startswith("measured")


def test_a_cpu_is_measured_once_in_the_format_asked_for():
    peak, source = peak_flops(CPU, torch.float32)
    assert 1e8 < peak < 1e14 and source.startswith("measured") and "float32" in source
    assert peak_flops(CPU, torch.float32, world_size=3)[0] == 3 * peak
    assert "bfloat16" in peak_flops(CPU, torch.bfloat16)[1]
