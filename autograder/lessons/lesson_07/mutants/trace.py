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
    kernels = [e for e in events if e.get("cat") == "kernel"]
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    queued = {e["args"]["correlation"]: e for e in launches}
    stages = [e for e in ranges if e["name"].startswith("stage: ")]
    host, device = dict.fromkeys(STAGES, 0.0), dict.fromkeys((*STAGES, "other"), 0.0)
    total = 0.0
    for step in steps:
        begin, end = step["ts"], step["ts"] + step["dur"]
        total += step["dur"]
        own = [e for e in stages if begin <= e["ts"] < end]
        for stage in own:
            host[stage["name"][7:]] += stage["dur"]
        for kernel in kernels:
            launch = queued.get(kernel["args"]["correlation"], {"ts": -float("inf")})
            if begin <= launch["ts"] < end:
                name = "other"
                for stage in own:
                    if stage["ts"] <= launch["ts"] < stage["ts"] + stage["dur"]:
                        name = stage["name"][7:]
                device[name] += kernel["dur"]
    host["other"] = total - sum(host.values())
    scale = 1e6 * len(steps) or 1.0
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
            "launches found by their name": (
                "launches found by their name",
                'e.get("cat") in ("cuda_runtime", "cuda_driver")]',
                'e.get("name") == "cudaLaunchKernel"]',
            ),
            "kernels between two stages for the one before": (
                "a stage that had ended",
                'if stage["ts"] <= launch["ts"] < stage["ts"] + stage["dur"]:',
                'if stage["ts"] <= launch["ts"] and stage["ts"] == max(\n'
                '                        e["ts"] for e in own if e["ts"] <= launch["ts"]\n'
                "                    ):",
            ),
            "fewer steps than none": (
                "no step counts",
                (
                    "    steps = steps[num_warmup_steps:]\n",
                    "    number = len(steps) - num_warmup_steps\n    steps = steps[num_warmup_steps:]\n",
                ),
                ('"num_steps": len(steps)', '"num_steps": number'),
            ),
            "a stage that begins with its step": (
                "ranges missing",
                "own = [e for e in stages if begin <= e",
                "own = [e for e in stages if begin < e",
            ),
            "divided by no steps": ("a value or a shape", " or 1.0", ""),
            "launches of one thread": (
                "launches of other threads are left out",
                'if begin <= launch["ts"] < end:',
                'if begin <= launch["ts"] < end and launch.get("tid") == step.get("tid"):',
            ),
            "kernels between two steps for the one before": (
                "a step that had ended",
                (
                    "    for step in steps:\n",
                    '    starts = [e["ts"] for e in steps[1:]] + [float("inf")]\n'
                    "    for step, following in zip(steps, starts):\n",
                ),
                ('if begin <= launch["ts"] < end:', 'if begin <= launch["ts"] < following:'),
            ),
            "averaging over warm-up steps": (
                "averaging over the warm-up steps",
                "steps = steps[num_warmup_steps:]",
                "pass",
            ),
            "two warm-up steps, whatever is asked for": (
                "averaging over the warm-up steps",
                "steps[num_warmup_steps:]",
                "steps[min(num_warmup_steps, 2):]",
            ),
            "the last steps dropped": (
                "the last ones were dropped",
                "steps[num_warmup_steps:]",
                "steps[:len(steps) - num_warmup_steps]",
            ),
            "timing CUDA without a sync: the host's ranges": (
                "timing CUDA without a sync",
                "{name: value / scale for name, value in device.items()}",
                "{name: value / scale if kernels else 0.0 for name, value in host.items()}",
            ),
            "timing CUDA without a sync: by the moment when a kernel runs": (
                "timing CUDA without a sync",
                'queued.get(kernel["args"]["correlation"], {"ts": -float("inf")})',
                "kernel",
            ),
            "a time without its unit": (
                "a time without its unit",
                "scale = 1e6 * len(steps)",
                "scale = len(steps)",
            ),
            "milliseconds": ("not in milliseconds", "scale = 1e6 * len(steps)", "scale = 1e3 * len(steps)"),
            "sums in place of means": ("the sum over the steps", "scale = 1e6 * len(steps)", "scale = 1e6"),
            "the GPU's copies counted too": (
                "a range counted twice",
                (
                    'e.get("cat") == "user_annotation" and',
                    'str(e.get("cat")).endswith("user_annotation") and',
                ),
                ('(e for e in ranges if e["name"]', '(e for e in ranges if e["cat"][0] == "u" and e["name"]'),
            ),
            "every range with a number taken for a step": (
                "something else than the `ProfilerStep#` ranges",
                'e["name"].startswith("ProfilerStep#")',
                '"#" in e["name"]',
            ),
            "every other range taken for a stage": (
                "a value or a shape there that the code does not expect",
                'e["name"].startswith("stage: ")',
                'not e["name"].startswith("ProfilerStep#")',
            ),
            "steps sorted by name": (
                "a name sorted as text",
                'key=lambda e: e["ts"])',
                'key=lambda e: e["name"])',
            ),
            "steps in the order of the list": (
                "in the order of the list",
                'sorted((e for e in ranges if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])',
                '[e for e in ranges if e["name"].startswith("ProfilerStep#")]',
            ),
            "one range of a name in a step": (
                "several ranges of one name",
                (
                    'host[stage["name"][7:]] += stage["dur"]',
                    'if stage["name"] not in seen:\n                host[stage["name"][7:]] += stage["dur"]\n'
                    '            seen.add(stage["name"])',
                ),
                (
                    "        for stage in own:\n            if",
                    "        seen = set()\n        for stage in sorted("
                    'own, key=lambda e: e["ts"]):\n            if',
                ),
            ),
            "the last range of a name": (
                "several ranges of one name",
                ('host[stage["name"][7:]] += stage["dur"]', 'host[stage["name"][7:]] = stage["dur"]'),
                ("        for stage in own:", '        for stage in sorted(own, key=lambda e: e["ts"]):'),
            ),
            "stages that never occur left out": (
                "a stage that never occurs is left out",
                "{name: value / scale for name, value in host.items()}",
                "{name: value / scale for name, value in host.items() if value}",
            ),
            "device times of a GPU alone": (
                "a stage that never occurs is left out",
                "{name: value / scale for name, value in device.items()}",
                "{name: value / scale for name, value in device.items() if kernels}",
            ),
            "other is what no stage of the model takes": (
                "ranges missing, or others among them",
                "total - sum(host.values())",
                'total - sum(host.values()) + host["data"] + host["transfer"]',
            ),
            "kernels of no stage left out": (
                "in no stage is left out",
                "device[name] +=",
                'device[name] += name != "other" and',
            ),
            "memory copies counted as kernels": (
                "copies in memory",
                'for e in events if e.get("cat") == "kernel"]',
                'for e in events if e.get("cat") in ("kernel", "gpu_memcpy")]',
            ),
            "the length of the launches": (
                "kernels missing, such as",
                'device[name] += kernel["dur"]',
                'device[name] += launch["dur"]',
            ),
            "one kernel of a launch": (
                "one launch may queue several kernels",
                '    kernels = [e for e in events if e.get("cat") == "kernel"]\n',
                '    kernels = {e["args"]["correlation"]: e for e in events if e.get("cat") == "kernel"}.values()\n',
            ),
            "the first kernel of a launch": (
                "one launch may queue several kernels",
                '    kernels = [e for e in events if e.get("cat") == "kernel"]\n',
                '    kernels = [e for e in events[::-1] if e.get("cat") == "kernel"]\n'
                '    kernels = {e["args"]["correlation"]: e for e in kernels}.values()\n',
            ),
            "means over the steps that have the stage": (
                "a mean over the steps that have the stage",
                ("    total = 0.0\n", "    total, has = 0.0, dict.fromkeys(STAGES, 0)\n"),
                (
                    "        for stage in own:\n            host",
                    '        for name in {e["name"][7:] for e in own}:\n            has[name] += 1\n'
                    "        for stage in own:\n            host",
                ),
                (
                    "{name: value / scale for name, value in host.items()}",
                    "{name: value / 1e6 / (has.get(name) or len(steps)) for name, value in host.items()}",
                ),
            ),
            "all steps counted in the number": (
                "averaging over the warm-up steps",
                '"num_steps": len(steps)',
                '"num_steps": len(steps) + num_warmup_steps',
            ),
            "from the first step to the last": (
                "the mean length of the `ProfilerStep#` ranges",
                '"step_time": total / scale',
                '"step_time": (steps[-1]["ts"] + steps[-1]["dur"] - steps[0]["ts"]) / scale',
            ),
            "events sorted in place": (
                "sorted in place",
                "    ranges = [e for e",
                '    events.sort(key=lambda e: e["ts"])\n    ranges = [e for e',
            ),
            "steps in the order of their numbers": (
                "a profiler that starts anew",
                'key=lambda e: e["ts"])',
                'key=lambda e: int(e["name"][13:]))',
            ),
            "steps kept by their name": (
                "a number comes twice",
                "    steps = steps[num_warmup_steps:]\n",
                '    steps = {e["name"]: e for e in steps}.values()\n'
                '    steps = sorted(steps, key=lambda e: e["ts"])[num_warmup_steps:]\n',
            ),
            "every range with these words in its name": (
                "these words somewhere in its name",
                (
                    'if e["name"].startswith("ProfilerStep#")',
                    'if "ProfilerStep#" in e["name"]',
                ),
                (
                    'if e["name"].startswith("stage: ")]',
                    'if "stage: " in e["name"]]',
                ),
                ('host[stage["name"][7:]]', 'host[stage["name"].split("stage: ")[1]]'),
                ('name = stage["name"][7:]', 'name = stage["name"].split("stage: ")[1]'),
            ),
            "whatever is no copy of a GPU": (
                "something else than `user_annotation`",
                'if e.get("cat") == "user_annotation" and',
                'if e.get("cat") != "gpu_user_annotation" and',
            ),
            "every name that begins like a step's": (
                "no `#` follows",
                'startswith("ProfilerStep#")',
                'startswith("ProfilerStep")',
            ),
            "every name that begins like a stage's": (
                "a value or a shape there that the code does not expect",
                'e["name"].startswith("stage: ")',
                'e["name"].startswith("stage")',
            ),
            "a stage that begins where a step ends, in both": (
                "begins where the step before ends",
                'own = [e for e in stages if begin <= e["ts"] < end]',
                'own = [e for e in stages if begin <= e["ts"] <= end]',
            ),
            "a stage that ends with its step": (
                "may end with its step",
                'own = [e for e in stages if begin <= e["ts"] < end]',
                'own = [e for e in stages if begin <= e["ts"] and e["ts"] + e["dur"] < end]',
            ),
            "a launch at the beginning of its stage": (
                "at the moment at which its stage begins",
                'if stage["ts"] <= launch["ts"] <',
                'if stage["ts"] < launch["ts"] <',
            ),
            "whatever else has the launch's correlation": (
                "kernels missing, such as",
                'e.get("cat") in ("cuda_runtime", "cuda_driver")]',
                'e.get("cat") in ("cuda_runtime", "overhead")]',
            ),
            "a trace of no events": (
                "a value or a shape",
                "    ranges = [e for e",
                '    first = min(e["ts"] for e in events if "ts" in e)\n    ranges = [e for e',
            ),
            "a reading kept by the address of its list": (
                "what belongs to the call before is kept",
                (
                    "def step_breakdown(events, num_warmup_steps):\n",
                    "def step_breakdown(events, num_warmup_steps):\n    key = id(events), num_warmup_steps\n"
                    "    if key not in KNOWN:\n        KNOWN[key] = read(events, num_warmup_steps)\n"
                    "    return KNOWN[key]\n\ndef read(events, num_warmup_steps):\n",
                ),
                ("STAGES = (", "KNOWN = {}\nSTAGES = ("),
            ),
            "kernels of one length taken for the same": (
                "taken for the same one",
                '    kernels = [e for e in events if e.get("cat") == "kernel"]\n',
                '    ran = [e for e in events if e.get("cat") == "kernel"]\n'
                '    kernels = {(e["args"]["correlation"], e["dur"]): e for e in ran}.values()\n',
            ),
            "a graph from its first kernel to its last": (
                "kernels that run at once",
                '    kernels = [e for e in events if e.get("cat") == "kernel"]\n',
                "    kernels = {}\n    for e in events:\n"
                '        if e.get("cat") == "kernel":\n'
                '            kernels.setdefault(e["args"]["correlation"], []).append(e)\n'
                '    kernels = [own[0] | {"dur": max(e["ts"] + e["dur"] for e in own) - min(e["ts"] for e in own)}\n'
                "               for own in kernels.values()]\n",
            ),
            "nothing returned": ("nothing is returned", "    return {", "    {"),
        },
    )
}
