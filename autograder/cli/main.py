"""The `workbook` command. Each verb is one small function that loads only what it needs.

Exit status: 0 good, 1 the answer is no, 2 a user error, told in one line that names the fix.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path

from autograder.cli import of_a_checkout as cli_checkout
from autograder.cli import of_a_course as cli_course
from autograder.cli import of_feedback as cli_feedback
from autograder.cli.of_a_course import SANDBOX_LEVELS, WEAKER, Verb, answer
from autograder.common import one_line
from autograder.show import say
from course_lib.base import project_version

_OURS = "{} (a mistake of ours: please report it; WORKBOOK_DEBUG=1 shows where it happened)"
_MAX_COMPLAINT_BYTES = 4_000  # a path may have as many


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit status; no traceback reaches the user."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, TextIOWrapper
        ):  # a window that knows fewer letters than we print gets "?" for them
            stream.reconfigure(errors="replace")
    # Behind a format check that nothing here asks for, nbformat builds grammars for a second; without this it does not.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    argv = sys.argv[1:] if argv is None else [*argv]
    # What follows `test` is pytest's: argparse would take options there for its own.
    is_passed_on = argv[:1] == ["test"] and argv[1:2] not in (["-h"], ["--help"])
    arguments = _parser().parse_args(argv[:1] if is_passed_on else argv)
    if is_passed_on:
        arguments.pytest_arguments = argv[1:]
    if find_spec("nbgrader") is None:
        return _complain(
            'this is course_lib alone; the course comes with: pip install "training-workbook[course]"'
        )
    from course_lib.base import UserError

    try:
        return arguments.run(arguments)
    except UserError as error:
        return _complain(str(error))
    except KeyboardInterrupt as interrupt:
        say(f"\nworkbook: {one_line(str(interrupt)) or 'stopped'}", sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if os.environ.get("WORKBOOK_DEBUG"):
            raise
        if error.filename is None:
            return _complain(_OURS.format(f"{type(error).__name__}: {error}"))
        return _complain(
            f"cannot read or write {error.filename}: {error.strerror}; mend that file or its rights"
        )
    except Exception as error:
        if os.environ.get("WORKBOOK_DEBUG"):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _complain(_OURS.format(what))


def _complain(message: str) -> int:
    say(f"workbook: {one_line(message, _MAX_COMPLAINT_BYTES)}", sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbook",
        description="Learn to train neural networks fast, cheaply and reliably.",
        epilog="Exit status: 0 good, 1 the answer is no, 2 something must be fixed first.",
    )
    parser.add_argument("--version", action="version", version=f"workbook {project_version()}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, run: Verb, text: str, *, answers: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.set_defaults(run=run)
        if answers:
            added.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
        return added

    start = verb("start", _start, "open the course in JupyterLab", answers=False)
    start.add_argument("--no-browser", action="store_true", help="only print the address")
    start.add_argument("--port", type=int, metavar="N", help="default: the first free one from 8888 on")
    start.add_argument(
        "--dir", type=Path, metavar="FOLDER", help="where your notebooks are; default: ~/training-workbook"
    )
    start.add_argument(
        "--ip",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="to listen at; default: 127.0.0.1, this machine alone. 0.0.0.0 in a container whose port is published",
    )
    test = verb("test", _test, "run the project's own tests (in a checkout)", answers=False)
    test.description = (
        "Run the everyday tests; with --all all that CI runs, with --rest what of that is not for every day. Anything "
        "else is passed on to pytest: workbook test tests/autograder -k card."
    )
    test.add_argument("pytest_arguments", nargs="*", metavar="...", help="--all, --rest, or pytest's own")
    verb("doctor", _doctor, "look for what could go wrong on this machine, with one fix for each")
    check = verb("check", _check, "check a notebook's exercises and its quiz")
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("notebook", type=Path, nargs="?", metavar="NOTEBOOK")
    what.add_argument(
        "--evidence",
        type=Path,
        metavar="FILE",
        help="run the check of an evidence file again, and say whether it is confirmed",
    )
    check.add_argument(
        "--only",
        action="append",
        metavar="ID",
        help="this exercise alone, such as 1.2, without the quiz; repeatable",
    )
    check.add_argument("--require-sandbox", choices=SANDBOX_LEVELS, help=WEAKER)
    progress = verb("progress", _progress, "show what you have tried and reached")
    data = progress.add_mutually_exclusive_group()
    data.add_argument(
        "--export", type=Path, metavar="FILE", help="write all that is stored about you, as JSON"
    )
    data.add_argument("--delete", action="store_true", help="delete all that is stored about you; asks first")
    progress.add_argument("--yes", action="store_true", help="with --delete: do not ask")
    progress.add_argument("--dir", type=Path, metavar="FOLDER", help="with --export: as given to start")
    sheet = verb(
        "certificate", _certificate, "write your certificate, or say what is missing to pass the course"
    )
    sheet.add_argument(
        "--name", help="as it shall stand on it; default: your name on the hub or WORKBOOK_PROFILE"
    )
    sheet.add_argument("--out", type=Path, metavar="FILE", help="default: certificate.html in this folder")
    again = verb(
        "reset", _reset, "put a lesson back as it was handed out; your work goes to a backup", answers=False
    )
    again.add_argument("lesson", metavar="LESSON", help="its number, such as 01")
    again.add_argument(
        "--answers", action="store_true", help="begin the quiz answers and predictions anew too"
    )
    again.add_argument("--dir", type=Path, metavar="FOLDER", help="as given to start")
    cli_course.add_verbs(verb)
    cli_checkout.add_verbs(verb)
    cli_feedback.add_verbs(verb)
    return parser


def _start(arguments: argparse.Namespace) -> int:
    from autograder.cli.jupyterlab import start

    return start(
        directory=arguments.dir,
        port=arguments.port,
        open_browser=not arguments.no_browser,
        address=arguments.ip,
    )


def _test(arguments: argparse.Namespace) -> int:
    from autograder.cli.run_tests import run_tests

    return run_tests(arguments.pytest_arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from autograder.cli.doctor import examine, report

    findings = []
    for finding in examine():
        findings.append(finding)
        if not arguments.json:  # each as it is known, for some take seconds
            say(report(finding))
    if arguments.json:
        answer(arguments, {"findings": [asdict(finding) for finding in findings]})
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def _check(arguments: argparse.Namespace) -> int:
    from autograder.cli.check_report import busy_programs_told, full_marks, progress_bar, table
    from autograder.engine.sandbox import on_interrupt
    from autograder.grading import bank_of_hand_in
    from autograder.notebooks import check_evidence, check_notebook
    from course_lib.base import UserError

    if arguments.evidence:
        ask = partial(check_evidence, arguments.evidence)
    else:
        bank_for = bank_of_hand_in(arguments.notebook)
        ask = partial(check_notebook, arguments.notebook, only=arguments.only, bank_for=bank_for)
    with progress_bar() as show, on_interrupt() as stop:
        report = ask(on_progress=show, require_sandbox=arguments.require_sandbox, stop=stop)
    if unknown := set(arguments.only or ()) - {result.id for result in report.exercises}:
        raise UserError(
            f"lesson {report.lesson} has no exercise {sorted(unknown)[0]}; leave --only out to see all"
        )
    answer(arguments, report.to_dict(), table(report))
    tell = busy_programs_told()
    for result in report.exercises:
        tell(result)
    return 0 if full_marks(report) else 1


def _progress(arguments: argparse.Namespace) -> int:
    if arguments.export or arguments.delete:
        return _my_data(arguments)
    from autograder.kept import summary
    from autograder.learner import summary_text

    found = summary()
    answer(arguments, found.to_dict(), summary_text(found))
    return 0


def _my_data(arguments: argparse.Namespace) -> int:
    from autograder.common import default_folder
    from autograder.learner import my_data

    folder = (arguments.dir or default_folder()).expanduser().resolve()
    if arguments.export:
        said = my_data.export(arguments.export.expanduser(), folder)
        answer(arguments, {"file": str(arguments.export)}, said)
        return 0
    found = my_data.stored()
    if not (text := my_data.described(found, folder)):
        answer(arguments, {"deleted": False}, f'Nothing is stored about "{found.learner}".')
        return 0
    say(text, sys.stderr if arguments.json else sys.stdout)
    if not arguments.yes and not _confirmed():
        answer(arguments, {"deleted": False}, "Nothing was deleted.")
        return 1
    my_data.delete(found)
    answer(arguments, {"deleted": True}, "Deleted.")
    return 0


def _confirmed() -> bool:
    print("Type yes to delete: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _certificate(arguments: argparse.Namespace) -> int:
    from autograder.learner import FILE_NAME, make

    result = make(arguments.name, arguments.out or Path(FILE_NAME))
    path = str(result.path) if result.path else None
    answer(arguments, {"passed": not result.missing, "missing": result.missing, "file": path}, repr(result))
    return 0 if result.path else 1


def _reset(arguments: argparse.Namespace) -> int:
    from autograder.common import default_folder, release_folder
    from autograder.learner import reset

    folder = (arguments.dir or default_folder()).expanduser().resolve()
    say("\n".join(reset(arguments.lesson, release_folder(), folder, with_answers=arguments.answers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
