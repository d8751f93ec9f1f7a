"""`course-lib export`: a trained run as a file or folder for other programs."""

from __future__ import annotations

import argparse
from typing import Any

from course_lib.cli.common import GOOD


def add(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="write a trained model for other programs",
        description="Write the best model of a run, tokenizer and label names inside: safetensors (weights), "
        "torch-export (a graph), or hf (a folder for from_pretrained, of a run with hf_model).",
    )
    export.add_argument("run_folder", metavar="RUN", help="the folder of a run")
    export.add_argument("--format", choices=("safetensors", "torch-export", "hf"), required=True)
    export.add_argument("--out", metavar="PATH", help="default: RUN/exports/, named by run, step and weights")
    export.add_argument("--json", action="store_true", help="print JSON alone")
    export.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    from course_lib.base import to_json
    from course_lib.runs import export_run

    path = export_run(arguments.run_folder, arguments.format, arguments.out)
    print(to_json({"path": str(path), "format": arguments.format}) if arguments.json else path)
    return GOOD
