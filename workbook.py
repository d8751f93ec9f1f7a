#!/usr/bin/env python3
"""Set the workbook up and run it: `python3 workbook.py start` or `python3 workbook.py test`.

Needs git's checkout, Python 3.11 or newer and nothing else. Makes `.venv` beside this file, installs the
versions of constraints.txt into it with the machine's own pip settings, and hands over to its `workbook`
command. Running it again reuses what is there and repairs what is not.

This file must parse on old Pythons, the second included, so that they get the sentence below instead of a syntax
error: it has no annotations.
"""

import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "workbook: this is Python %d.%d, and the workbook needs Python 3.11 or newer. "
        "Install one and start again with it, for example: python3.12 workbook.py start\n"
        % (sys.version_info[0], sys.version_info[1])
    )
    sys.exit(2)

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent

VERBS = (
    "start test doctor check release collect grade report return regrade extend calibrate progress certificate site "
    "reset build package"
).split()
USAGE = """usage: python3 workbook.py VERB [options]

  start     open the course in JupyterLab      (--no-browser, --port N, --dir FOLDER, --ip ADDRESS)
  test      run the project's own tests
  doctor    look for what could go wrong here, with one fix for each

The first run makes .venv in this folder and installs into it; that takes a few minutes. Afterwards the same
verbs and a few more are in the console command .venv/bin/workbook (see its --help).
"""


def hand_over(python, argv):
    """Become the `workbook` command of the environment (on Windows, which has no exec, wait for it)."""
    # -P: a folder named autograder where this was called from must not pass for the installed one.
    command = [
        str(python),
        "-P",
        "-c",
        "from autograder.cli.main import main; raise SystemExit(main())",
    ] + argv
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 130


def main(argv):
    verb = argv[0] if argv else "--help"
    if verb in ("-h", "--help", "help"):
        sys.stdout.write(USAGE)
        return 0
    if verb not in VERBS:
        sys.stderr.write("workbook: there is no verb %r; the verbs are %s\n" % (verb, ", ".join(VERBS)))
        return 2

    from bootstrap.environment import ensure_environment
    from bootstrap.packages import SetupError

    try:
        python = ensure_environment(ROOT, "dev" if verb == "test" else "course")
    except SetupError as error:
        sys.stderr.write("workbook: %s\n" % error)
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nworkbook: set-up stopped; run the same command again to go on from here\n")
        return 130
    return hand_over(python, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
