"""`python -m tests.benchmarks.gpu`: see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import tests.benchmarks.gpu
from tests.benchmarks.gpu.children import PARTS, TEN_MINUTES, run_parts, tell
from tests.benchmarks.gpu.lines import markdown


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.gpu",
        description=tests.benchmarks.gpu.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=[*PARTS], help="those alone")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, help="file for the JSON")
    parser.add_argument("--seconds", type=float, default=TEN_MINUTES, help="what all parts may take together")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes and no compiler: to see that it works"
    )
    parser.add_argument("--child", choices=[*PARTS], help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        tell(arguments.child, arguments.device, arguments.quick, arguments.report)
        return 0
    options = ["--device", arguments.device, *(["--quick"] if arguments.quick else [])]
    made = datetime.now(UTC).isoformat(timespec="seconds")
    report = {"made": made, **run_parts(arguments.parts, options, arguments.seconds)}
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(markdown(report))
    return int(any(row["verdict"].startswith("fail") for row in report["rows"]))


if __name__ == "__main__":
    sys.exit(main())
