"""`course-lib`: train on your own table without writing a program.

Exit codes: 0 good, 1 the answer is no (a run that diverged), 2 something to correct, said in one line,
130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from course_lib.base import UserError, project_version
from course_lib.cli.common import GOOD, INTERRUPTED, NO, USER_ERROR, complain
from course_lib.runs import known_keys

COMMANDS = ("train", "tune", "bench", "evaluate", "predict", "export", "compare", "dashboard", "info")
DEBUG_VARIABLE = "COURSE_LIB_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors become one line on stderr."""
    # Read by OpenMP when torch is loaded. Threads that spin while they wait take the cores from the one they
    # wait for as soon as anything else runs on the machine (a browser is enough).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if os.environ.get("RANK", "0") != "0":  # under torchrun only the first process speaks
        from course_lib.distributed import quiet_other_ranks

        quiet_other_ranks()
    try:
        arguments = _parser().parse_args(argv)
        return int(arguments.run(arguments))
    except UserError as error:
        return complain(str(error), USER_ERROR)
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except ArithmeticError as error:
        return complain(str(error), NO)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _unexpected(error)


class _Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        if callable(self.epilog):  # what takes time to write is written when it is read
            self.epilog = self.epilog()
        return super().format_help()

    def parse_known_args(self, *given: Any, **options: Any) -> tuple[Any, list[str]]:
        """What is unknown is refused here, by the command it was given to, and not by `course-lib`."""
        found, unknown = super().parse_known_args(*given, **options)
        if unknown:
            self.error(self._about(unknown[0]))
        return found, unknown

    def _about(self, unknown: str) -> str:
        name, flags = unknown.partition("=")[0], [*self._option_string_actions]
        key = name.strip("-").replace("-", "_")
        if "--set" in flags and key in known_keys():
            return f"{name} is a key of the config: write --set {key}=VALUE"
        nearest = difflib.get_close_matches(name, flags, n=1) if name.startswith("-") else []
        return f"there is no {name} here" + "".join(f", the nearest is {flag}" for flag in nearest)

    def error(self, message: str) -> NoReturn:
        self.exit(USER_ERROR, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="course-lib",
        description="Train, tune, measure and use text models on your own table, fast and reproducibly.",
        epilog="course-lib COMMAND --help says more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"course-lib {project_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"course_lib.cli.{name}").add(commands)
    return parser


def _unexpected(error: Exception) -> int:
    first_line = (str(error).splitlines() or [""])[0]
    distributed = sys.modules.get("course_lib.distributed.ranks")
    if distributed is not None and distributed.is_lost_peer(error):
        lost = "another process of this job ended (see above, or its machine); continue it with --resume"
        return complain(lost, USER_ERROR)
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).partition(".")[0]
        says = f"the package {package} is not installed: pip install {package}"
    elif isinstance(error, FileNotFoundError):
        says = f"there is no {error.filename or 'such file'}"
    elif isinstance(error, OSError):
        says = f"{error.strerror or error}: {error.filename or 'a file'}; check space and permissions there"
    elif isinstance(error, MemoryError) or re.search("(?i)out of memory|tried to allocate", first_line):
        says = "out of memory: lower micro_batch_size or max_length (--set micro_batch_size=16)"
    else:
        says = (
            f"unexpected {type(error).__name__}: {first_line}; this is a fault of course-lib, "
            f"{DEBUG_VARIABLE}=1 shows where"
        )
    if distributed is not None and not distributed.Ranks.from_environment().is_main_process:
        sys.stderr = sys.__stderr__  # a process that was quiet may be the only one with this fault
    return complain(says, USER_ERROR)
