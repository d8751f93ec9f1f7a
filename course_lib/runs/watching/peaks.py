"""What a device can do at most: data sheets of GPUs, and matrix products measured where there is none.

A peak is that of the number format in which a run computes: dividing an fp32 run by the bf16 peak would call it
sixteen times as lazy as it is, and an emulated format has no peak at all.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from course_lib.measuring import synchronize
from course_lib.training import computes_in_tf32, has_bf16_units

BFLOAT16 = "bfloat16"


@dataclass(frozen=True, kw_only=True)
class DataSheet:
    """Dense TFLOP/s of a GPU; where its sheet prints a figure "with sparsity", half of it. Products of 16 bits add up
    in fp32, as torch's do. None: no units for it.

    `name` is a pattern for what `torch.cuda.get_device_name` says.
    """

    name: str
    url: str
    float32: float
    tf32: float | None = None
    float16: float
    bfloat16: float | None = None
    num_multiprocessors: int | None = None
    """Of the whole GPU, where it can be cut into MIG slices: a slice does what its share of them does."""


_H100 = "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
_H200 = "https://www.nvidia.com/en-us/data-center/h200/"
_V100 = (
    "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf"
)
_A100 = (
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
    "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
)
_GA102 = "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"
_ADA = "https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf"
_ADA_PRO = (
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/technologies/"
    "NVIDIA-ADA-GPU-PROVIZ-Architecture-Whitepaper_1.1.pdf"
)


def _sheet(name: str, url: str, *tera: float | None, sms: int | None = None) -> DataSheet:
    float32, tf32, float16, bfloat16 = tera
    assert float32 is not None and float16 is not None
    return DataSheet(
        name=name,
        url=url,
        float32=float32,
        tf32=tf32,
        float16=float16,
        bfloat16=bfloat16,
        num_multiprocessors=sms,
    )


DATA_SHEETS = (  # fp32, TF32, fp16, bf16; the more special name first
    _sheet("GB200", "https://www.nvidia.com/en-us/data-center/gb200-nvl72/", 80, 1250, 2500, 2500, sms=152),
    _sheet("B200", "https://www.nvidia.com/en-us/data-center/hgx/", 75, 1100, 2250, 2250, sms=148),
    _sheet("H200 NVL", _H200, 60, 417.5, 835.5, 835.5, sms=132),
    _sheet("H200|GH200", _H200, 67, 494.7, 989.4, 989.4, sms=132),
    _sheet("H100 NVL", _H100, 60, 417.5, 835.5, 835.5, sms=132),
    _sheet("H100 PCIe|H100 80GB HBM2e", _H100, 51.2, 378, 756, 756, sms=114),
    _sheet("H100", _H100, 67, 494.7, 989.4, 989.4, sms=132),
    _sheet("A100", _A100, 19.5, 156, 312, 312, sms=108),
    _sheet(
        "A30",
        "https://www.nvidia.com/content/dam/en-zz/Solutions/data-center/products/a30-gpu/pdf/a30-datasheet.pdf",
        *(10.3, 82, 165, 165),
        sms=56,
    ),
    _sheet(
        "A40",
        "https://images.nvidia.com/content/Solutions/data-center/a40/nvidia-a40-datasheet.pdf",
        *(37.4, 74.8, 149.7, 149.7),
    ),
    _sheet(
        "A10",
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/a10-datasheet.pdf",
        *(31.2, 62.5, 125, 125),
    ),
    _sheet(
        "A10G",
        "https://d1.awsstatic.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet_FINAL_02_17_2022.pdf",
        *(35, 35, 70, 70),
    ),
    _sheet("RTX A6000", _GA102, 38.7, 77.4, 154.8, 154.8),
    _sheet("RTX 3090", _GA102, 35.6, 35.6, 71, 71),
    _sheet("L40S", "https://resources.nvidia.com/en-us-l40s/l40s-datasheet-28413", 91.6, 183, 362, 362),
    _sheet("L40", _ADA, 90.5, 90.5, 181, 181),
    _sheet("L4", _ADA, 30.3, 60, 121, 121),
    _sheet("RTX 6000 Ada Generation", _ADA_PRO, 91.1, 182.1, 364.2, 364.2),
    _sheet("RTX 4090", _ADA, 82.6, 82.6, 165.2, 165.2),
    _sheet(
        "RTX 5090",
        "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf",
        *(104.8, 104.8, 209.5, 209.5),
    ),
    _sheet(
        "T4",
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf",
        *(8.1, None, 65, None),
    ),
    _sheet("V100S-PCIE", _V100, 16.4, None, 130, None),
    _sheet("V100-PCIE", _V100, 14, None, 112, None),
    _sheet("V100-SXM[23]", _V100, 15.7, None, 125, None),
)
# What a longer name says: another GPU (RTX 4090 D, 3090 Ti, Laptop), or a share of one (vGPU: A100-10C).
_OTHERS = re.compile(r"\b(D|Ti|Laptop|Max-Q|Mobile|SUPER)\b|-\d+[A-Z]\b")


def data_sheet(device_name: str) -> DataSheet | None:
    """That of a GPU by its name, as of the whole GPU where the name is that of a MIG slice; None for one that is not in
    the table."""
    if _OTHERS.search(device_name):
        return None
    return next((each for each in DATA_SHEETS if re.search(rf"\b({each.name})\b", device_name)), None)


def data_sheet_peak(device_name: str, number_format: str = BFLOAT16) -> float | None:
    """FLOP/s of a whole GPU by its name, dense, in `float32`, `tf32`, `float16` or `bfloat16`; None for one that is not
    in the table, or has no units for it."""
    sheet = data_sheet(device_name)
    tera = getattr(sheet, number_format) if sheet else None
    return None if tera is None else tera * 1e12


def peak_flops(device: torch.device, dtype: torch.dtype, world_size: int = 1) -> tuple[float, str]:
    """FLOP/s that `world_size` such devices can do at most in products of `dtype`, and the source: the data sheet of a
    known GPU, a MIG slice's share of it, else matrix products measured here (on a CPU with the threads of now).

    fp32 means TF32 where torch is set to compute in it. Where a GPU emulates bf16, its fp16 units stand for them.
    """
    number_format, note = str(dtype).removeprefix("torch."), ""
    if device.type == "cuda":
        if dtype == torch.bfloat16 and not has_bf16_units(device):
            number_format, dtype, note = "float16", torch.float16, ", for bf16 is emulated"
        elif dtype == torch.float32 and computes_in_tf32(device):
            number_format = "tf32"
        name = torch.cuda.get_device_name(device)
        sheet, peak = data_sheet(name), data_sheet_peak(name, number_format)
        share, of_slice = _share(name, sheet, torch.cuda.get_device_properties(device))
        if sheet is not None and peak is not None and share is not None:
            source = f"data sheet: dense {number_format} of {name}{of_slice}{note} ({sheet.url})"
            return world_size * peak * share, source
    peak = _measured_peak(device, dtype, number_format, torch.get_num_threads())
    return world_size * peak, f"measured: the fastest of several {number_format} matrix products{note}"


def _share(name: str, sheet: DataSheet | None, properties: Any) -> tuple[float | None, str]:
    """How much of its GPU a device is, and in words; None where that is not known."""
    if "MIG" not in name:
        return 1.0, ""
    if sheet is None or sheet.num_multiprocessors is None:
        return None, ""
    own, all_of_it = properties.multi_processor_count, sheet.num_multiprocessors
    return min(1.0, own / all_of_it), f", {own} of {all_of_it} multiprocessors"


@cache
def _measured_peak(device: torch.device, dtype: torch.dtype, _number_format: str, _num_threads: int) -> float:
    """Takes about a quarter of a second."""
    size = 768 if device.type == "cpu" else 8192
    generator = torch.Generator(device).manual_seed(0)  # its own: the run's random numbers stay as they were
    left, right = torch.randn(2, size, size, device=device, dtype=dtype, generator=generator)
    fastest, end = float("inf"), time.perf_counter() + 0.25
    while time.perf_counter() < end:
        start = time.perf_counter()
        left @ right
        synchronize()
        fastest = min(fastest, time.perf_counter() - start)
    return 2 * size**3 / fastest
