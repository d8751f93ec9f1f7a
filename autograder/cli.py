"""The `workbook` command. Each verb is one small function that loads only what it needs.

Exit status: 0 good, 1 the answer is no, 2 a user error, told in one line that names the fix.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Verb = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit status; no traceback reaches the user."""
    arguments = _parser().parse_args(argv)
    from course_lib.errors import UserError

    try:
        return arguments.run(arguments)
    except UserError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("\nworkbook: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get("WORKBOOK_DEBUG"):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _complain(
            f"{what} (a mistake of ours: please report it; WORKBOOK_DEBUG=1 shows where it happened)"
        )


def _complain(message: str) -> int:
    print(f"workbook: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbook",
        description="Learn to train neural networks fast, cheaply and reliably.",
        epilog="Exit status: 0 good, 1 the answer is no, 2 something must be fixed first.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, run: Verb, text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.set_defaults(run=run)
        return added

    start = verb("start", _start, "open the course in JupyterLab")
    start.add_argument("--no-browser", action="store_true", help="only print the address")
    start.add_argument("--port", type=int, metavar="N", help="default: the first free one from 8888 on")
    start.add_argument(
        "--dir", type=Path, metavar="FOLDER", help="where your notebooks are; default: ~/training-workbook"
    )
    test = verb("test", _test, "run the project's own tests (in a checkout)")
    test.add_argument("pytest_arguments", nargs=argparse.REMAINDER, metavar="...", help="passed on to pytest")
    doctor = verb("doctor", _doctor, "look for what could go wrong on this machine, with one fix for each")
    _add_json(doctor)
    check = verb("check", _check, "check a notebook's exercises and its quiz")
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("notebook", type=Path, nargs="?", metavar="NOTEBOOK")
    what.add_argument("--evidence", type=Path, metavar="FILE", help="run the check of an evidence file again")
    check.add_argument(
        "--only", action="append", metavar="ID", help="this exercise alone, such as 1.2; repeatable"
    )
    _add_json(check)
    progress = verb("progress", _progress, "show what you have tried and reached")
    _add_json(progress)
    build = verb("build", _build, "make the notebooks from the lessons' texts (in a checkout)")
    build.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a notebook would change"
    )
    _add_json(build)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _start(arguments: argparse.Namespace) -> int:
    from autograder.start import start

    return start(directory=arguments.dir, port=arguments.port, open_browser=not arguments.no_browser)


def _test(arguments: argparse.Namespace) -> int:
    from autograder.run_tests import run_tests

    return run_tests(arguments.pytest_arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from autograder.doctor import examine, report

    findings = examine(
        on_finding=None if arguments.json else lambda finding: print(report(finding), flush=True)
    )
    if arguments.json:
        _print_json({"findings": [finding.as_dict() for finding in findings]})
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def _check(arguments: argparse.Namespace) -> int:
    from autograder.check_report import full_marks, progress_bar, table
    from autograder.engine import check_evidence, check_notebook, public
    from course_lib.errors import UserError

    with progress_bar() as show:
        if arguments.evidence:
            report = check_evidence(arguments.evidence, on_progress=show)
        else:
            report = check_notebook(arguments.notebook, only=arguments.only, on_progress=show)
    if unknown := set(arguments.only or ()) - {result["id"] for result in report["exercises"]}:
        raise UserError(
            f"lesson {report['lesson']} has no exercise {sorted(unknown)[0]}; leave --only out to see all"
        )
    if arguments.json:
        _print_json(public(report))
    else:
        print(table(report))
    return 0 if full_marks(report) else 1


def _progress(arguments: argparse.Namespace) -> int:
    from autograder.progress import summary
    from autograder.progress_view import summary_text

    found = summary()
    if arguments.json:
        _print_json(found)
    else:
        print(summary_text(found))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    from autograder.build import build

    changed = build(check=arguments.check)
    if arguments.json:
        _print_json({"changed": changed})
    else:
        for name in changed:
            print(f"{'would change' if arguments.check else 'wrote'}: {name}")
        if not changed:
            print("Every notebook is as its text says.")
    return 1 if arguments.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
