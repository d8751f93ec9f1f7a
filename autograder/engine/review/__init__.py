"""What in the text of a cell a person should look at: whatever it reaches that is not on the list.

Learner code shares its process with the harness that calls it, and Python lets code change anything in its own
process. What matters is therefore worked out or repeated elsewhere; what only that process can know, such as a count
of syncs, rests on code that does not reach behind its back. Here the grader reads the cell before it runs, in a
process that the cell never sees, and notes what reaches beyond the public parts of the libraries that solutions are
made of. A note costs no points.
"""

from __future__ import annotations

from collections.abc import Collection

from autograder.common import ApartError, run_apart
from autograder.engine.review.imported import find_imported
from autograder.engine.review.reading import read

SECONDS = 10.0
LONGEST = 200_000  # characters; the longest right solution has a twentieth


def reasons(
    source: str, *, counts: bool, allowed: Collection[str] = (), given: str = "", entry: str = ""
) -> list[str]:
    """Why a person should look at this cell, one sentence for each means; empty for nearly every cell.

    Args:
        counts: the exercise rests on counts of operators, which another thread would hide.
        allowed: what it is about, such as "os.fsync", and therefore nobody's suspicion.
        given: the source of the harness, whose objects have attributes of their own.
        entry: the name of what the exercise asks for, which the harness calls with what it likes.

    What is too long, nested too deep or takes too long to be read is a reason, too.
    """
    if len(source) > LONGEST:
        return [f"the cell is too long to be read before it runs: {len(source):,} characters"]
    try:
        found: list[str] = run_apart(read, source, counts, sorted(allowed), given, entry, seconds=SECONDS)
    except ApartError as error:
        return [f"the cell could not be read before it ran: reading it {error}"]
    return found


def imported(source: str) -> int | None:
    """The first line in which the cell makes use of `course_lib`; None where it does not, or where the cell cannot be
    read, which `reasons` says."""
    if len(source) > LONGEST:
        return None
    try:
        found: int | None = run_apart(find_imported, source, seconds=SECONDS)
    except ApartError:
        return None
    return found
