"""Wrong solutions of 7.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_BREAKDOWN = """
STAGES = ("data", "transfer", "forward", "backward", "optimizer")

@exercise("7.1")
def step_breakdown(events, num_warmup_steps):
    ranges = [e for e in events if e.get("cat") == "user_annotation" and "dur" in e]
    steps = sorted((e for e in ranges if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])
    steps = steps[num_warmup_steps:]
    kernels = {e["args"]["correlation"]: e["dur"] for e in events if e.get("cat") == "kernel"}
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    stages = [e for e in ranges if e["name"].startswith("stage: ")]
    host, device = dict.fromkeys(STAGES, 0.0), dict.fromkeys((*STAGES, "other"), 0.0)
    total = 0.0
    for step in steps:
        begin, end = step["ts"], step["ts"] + step["dur"]
        total += step["dur"]
        own = [e for e in stages if begin <= e["ts"] < end]
        for stage in own:
            host[stage["name"][7:]] += stage["dur"]
        for launch in launches:
            if begin <= launch["ts"] < end:
                name = "other"
                for stage in own:
                    if stage["ts"] <= launch["ts"] < stage["ts"] + stage["dur"]:
                        name = stage["name"][7:]
                device[name] += kernels.get(launch["args"]["correlation"], 0.0)
    host["other"] = total - sum(host.values())
    scale = 1e6 * len(steps)
    return {
        "num_steps": len(steps),
        "step_time": total / scale,
        "host": {name: value / scale for name, value in host.items()},
        "device": {name: value / scale for name, value in device.items()},
    }
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.1": wrong(
        _BREAKDOWN,
        {
            "averaging over warm-up steps": (
                "averaging over the warm-up steps",
                "steps = steps[num_warmup_steps:]",
                "pass",
            ),
            "timing CUDA without a sync: the host's ranges": (
                "timing CUDA without a sync",
                "{name: value / scale for name, value in device.items()}",
                "{name: value / scale if kernels else 0.0 for name, value in host.items()}",
            ),
            "timing CUDA without a sync: by the moment when a kernel runs": (
                "timing CUDA without a sync",
                '    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]\n',
                '    launches = [e for e in events if e.get("cat") == "kernel"]\n',
            ),
            "a time without its unit": (
                "a time without its unit",
                "scale = 1e6 * len(steps)",
                "scale = len(steps)",
            ),
            "the GPU's copies counted too": (
                "a range counted twice",
                (
                    'e.get("cat") == "user_annotation" and',
                    'str(e.get("cat")).endswith("user_annotation") and',
                ),
                ('(e for e in ranges if e["name"]', '(e for e in ranges if e["cat"][0] == "u" and e["name"]'),
            ),
            "steps sorted by name": (
                "a name sorted as text",
                'key=lambda e: e["ts"])',
                'key=lambda e: e["name"])',
            ),
        },
    )
}
