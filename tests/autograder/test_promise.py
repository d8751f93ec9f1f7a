"""The promise in docs/grading.md stands in these words, and behind each of them stand tests.

A reference is FILE::FUNCTION of a test, or the name of an attempt at forging a grade (`tests/exploits`).
"""

# ruff: noqa: E501

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.exploits.all_cases import EXPLOITS

ROOT = Path(__file__).parents[2]
HERE = "tests/autograder"
References = tuple[str, ...]

IMPOSSIBLE: dict[str, References] = {
    "To change a time: all times are taken in the grader's process, and clocks that the solution sees decide nothing.": (
        f"{HERE}/test_sandbox.py::test_a_lie_about_the_time_changes_nothing",
        "patched clocks",
        "sleep made short",
        "waits made short",
    ),
    "To have processor time that nobody counts: threads and processes count, at whatever priority and whoever's children they are, and so does work between the measured segments.": (
        f"{HERE}/test_sandbox.py::test_cpu_time_of_all_descendants_is_seen",
        "work in children whose end is ignored",
        "work behind a double fork",
        "work in a helper of the lowest priority",
        "work in another thread of torch",
        "work in three processes",
        "burners left behind",
    ),
    "To be fast by waiting: what is left out of a time is the waiting for a core that the other side of the same block had too, and at most a quarter more.": (
        f"{HERE}/test_sides.py::test_waiting_that_both_sides_had_is_left_out",
        f"{HERE}/test_sides.py::test_waiting_that_one_side_alone_had_is_left_in_but_for_a_little",
        f"{HERE}/test_sides.py::test_a_wait_for_children_of_its_own_is_no_wait_for_the_core",
        "a wait for the core, made by threads",
        "a wait for the core, made by uncounted children",
        "a wait for the core, made by priorities",
        "a wait for the core, made by oneself",
    ),
    "To gain by being slow: slower than the baseline is a `fail` without points, and who stalls, crashes or prints without end while the clock runs earns no more than a solution that is plainly too slow.": (
        f"{HERE}/test_sides.py::test_far_below_the_baseline_is_a_fail",
        f"{HERE}/test_measure.py::test_who_is_slower_than_the_baseline_earns_nothing",
        f"{HERE}/test_sides.py::test_stalling_is_a_fail_with_its_own_reason",
        f"{HERE}/test_sides.py::test_crashing_and_flooding_are_no_measurement",
        "stalling where no clock runs",
        "a crash under the clock",
        "output without end under the clock",
        "3 times as slow as the baseline",
        "100 times as slow as the baseline",
    ),
    "To take back a count: a count that was told is with the grader at once, numbered, and stays as it is.": (
        f"{HERE}/test_told.py::test_what_is_told_is_what_happened_whatever_the_process_makes_of_it_later",
        f"{HERE}/test_told.py::test_an_answer_waits_for_all_that_was_told_before_it_and_a_closed_road_is_known",
        "the counts set back at the end of each step",
        "the road of counts closed",
        "the road of counts led elsewhere",
    ),
    "To answer by writing to the grader's pipes: requests, answers and counts are sealed with a key that came before the cell.": (
        f"{HERE}/test_wire.py::test_what_the_other_side_did_not_seal_is_not_believed",
        f"{HERE}/test_wire.py::test_each_frame_comes_once",
        f"{HERE}/test_told.py::test_what_the_worker_did_not_seal_is_not_told",
        "requests taken by threads that wait",
        "requests taken by files of one's own",
        "a letter in the place of requests",
    ),
    "To learn from a copy of what counts, or to hand out a state that holds nothing: such a copy cannot be made, and a state goes into a process that has not written it.": (
        "a copy of a run",
        "a shallow copy of a run",
        "steps of a run taken back",
        "a config that is kept, and a text that names it",
        "a state that is a number",
    ),
    "To have what an exercise waits for before it was asked for: it lies in another process, which sleeps for each request.": (
        f"{HERE}/test_storage.py::test_each_request_takes_its_time_asked_for_again_too",
        f"{HERE}/test_storage.py::test_waits_overlap_where_they_are_asked_for_at_the_same_time",
        f"{HERE}/test_storage.py::test_the_solutions_process_knows_nothing_of_what_is_stored",
        "samples asked for as the loader is made",
        "samples of the segment before",
        "samples made up",
    ),
    "To reach a file of the grader or of another student, the network, or a process outside the sandbox.": (
        f"{HERE}/test_sandbox.py::test_out_of_reach",
        f"{HERE}/test_hostile.py::test_siblings_and_the_server_are_out_of_reach",
        f"{HERE}/test_hostile.py::test_siblings_share_no_file_no_memory_and_no_address",
        "other submissions and the gradebook",
        "the grader's memory",
        "answers over the network",
        "all other processes killed",
    ),
    "To earn by the notebook: marks, metadata, outputs, added or changed checks, and what other cells do, change no points.": (
        "points in the metadata",
        "a check that is not graded",
        "a second check",
        "a bonus cell",
        "a check that is a number",
        "no check at all",
        "lines changed before they run",
        "another kernel",
    ),
    "To earn by the answers file more than its letters are worth.": (
        "every letter at once",
        "truth for a letter",
        "a score in the file",
        "questions that do not exist",
        "a neighbour's answers",
    ),
    "To find the keys of a graded release in what students get.": (
        f"{HERE}/test_release.py::test_nothing_of_the_keys_is_in_it",
        f"{HERE}/test_release.py::test_each_leak_is_found",
    ),
    "To have a record believed that was changed by hand: a check of it runs the cell anew.": (
        f"{HERE}/test_evidence.py::test_a_score_changed_by_hand_is_found_out",
    ),
    "To cost somebody else: whatever was handed in, that student gets a grade or a named reason, and every other student the same grade as without it.": (
        f"{HERE}/test_one_fate.py::test_a_class_with_all_of_them_is_graded_and_gets_feedback",
        f"{HERE}/test_one_fate.py::test_one_such_text_costs_the_others_nothing",
        f"{HERE}/test_grading.py::test_a_class_is_graded_whatever_is_in_it",
        f"{HERE}/test_memory_of_a_class.py::test_an_innocent_has_the_points_that_it_has_alone",
        f"{HERE}/test_hostile.py::test_what_waits_in_sockets_stays_small",
        "tests/fuzz/test_fuzz.py::test_a_few_damaged_hand_ins_and_it_goes_on",
    ),
    "To speak for another: the inside of an archive changes no file of another student.": (
        f"{HERE}/test_collect_hostile.py::test_the_inside_of_a_students_hand_in_speaks_for_nobody_else",
        f"{HERE}/test_collect_hostile.py::test_a_file_within_a_zip_changes_no_byte_of_another_students",
    ),
    "To have a text act: on a terminal, on a page or in a table it stays a text, marked as the learner's.": (
        f"{HERE}/test_text_stays_text.py::test_nothing_that_is_printed_acts_or_looks_like_a_verdict",
        f"{HERE}/test_text_stays_text.py::test_no_page_acts",
        f"{HERE}/test_learner_text.py::test_what_could_run_is_shown_as_typed",
        f"{HERE}/test_text_stays_text.py::test_no_cell_of_a_table_is_a_formula",
    ),
}
FLAGGED: dict[str, References] = {
    "A name, a module, an attribute or a call that is on no list, however the text comes to it: a module behind another, a frame, a double underscore, a name made as it runs, a store into a library, text that is run, unpickling, a file, another process.": (
        f"{HERE}/test_review_means.py::test_a_means_is_seen",
        f"{HERE}/test_review_inside.py::test_a_means_is_seen",
        f"{HERE}/test_review_list.py::test_is_not_on_the_list",
        "a module behind torch",
        "a name made as it runs",
        "a dunder of a builtin",
    ),
    "A cell that cannot be read: it is too long, nested too deep, or took too long.": (
        f"{HERE}/test_review.py::test_what_cannot_be_read_is_noted",
        f"{HERE}/test_review.py::test_60_000_names_are_noted_for_their_length_alone",
    ),
    "What happens as the cell runs, in whatever thread: frames and `gc` looked into, text run as code, memory by `ctypes` or by an object that gives an address, unpickling, other processes, files of the system, imports that are on no list.": (
        f"{HERE}/test_deeds.py::test_what_the_cell_does_or_has_done_is_said",
        f"{HERE}/test_deeds.py::test_no_object_says_where_its_values_lie",
        f"{HERE}/test_deeds.py::test_to_open_files_opens_not_the_systems",
        f"{HERE}/test_deeds.py::test_the_flag_is_on_the_result_and_cannot_be_taken_back_by_catching_the_error",
    ),
    "Counts that are not whole: a message is missing, came twice, or is the cell's own.": (
        f"{HERE}/test_told.py::test_what_is_not_whole_is_known",
        "events told by the cell",
        "a message of its own on the road of counts",
    ),
    "Hooks that look on at a model called by hand, with what it has not computed.": (
        "hooks cleared and called",
        "hooks taken off by their numbers",
        "calls that end at the first block",
    ),
    "A solution that is more than 1.5 × as fast as ours, or learns faster than ours from the same seeds.": (
        f"{HERE}/test_measure.py::test_much_faster_than_our_reference_passes_and_is_looked_at",
        f"{HERE}/test_quality.py::test_a_much_better_one_passes_and_is_flagged_for_a_person",
    ),
}
#: What shows a limit, where something can.
NOT_CLAIMED: dict[str, References] = {
    "A `pass` on speed is a statement about the grading machine and its kind, with known error rates, and not about others.": (
        f"{HERE}/test_verdict.py::test_the_whole_rule_is_as_rarely_wrong_exactly",
    ),
    "The harness that calls a solution shares a process with it. Whether an event is told at all rests on code there, which a determined solution could change: the means of doing so are flagged, not impossible.": (
        "count_events replaced",
        "a dispatch mode that never starts",
    ),
    "Elsewhere than on Linux, counts wait in the solution's process for its next answer.": (
        f"{HERE}/test_told.py::test_where_there_is_no_socket_messages_come_with_the_answer",
    ),
    "Accuracy is compared on a few paired seeds: a loss within that noise is not seen, and the reason names the noise.": (
        f"{HERE}/test_quality.py::test_a_worse_one_fails_and_says_what_noise_was_allowed",
    ),
    "Two learners with the same code get the same verdict. The report names groups with equal code, and judges nobody.": (
        f"{HERE}/test_grading.py::test_a_report_names_the_mistakes_and_who_wrote_the_same",
    ),
    "Memory that only the operating system sees (allocator slack, file caches) is not graded.": (),
    "Stock `nbgrader autograde` reads a raw notebook in its own process, without our limits; `workbook grade` has them.": (
        f"{HERE}/test_one_fate.py::test_stock_nbgrader_goes_on_behind_them",
    ),
}
PROMISE = {"Impossible": IMPOSSIBLE, "Flagged": FLAGGED, "Not claimed": NOT_CLAIMED}


def written() -> dict[str, list[str]]:
    """What docs/grading.md says: heading → its sentences."""
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    promise = next(part for part in section if part.startswith("The promise\n"))
    parts = re.split(r"^\*\*(.+)\*\*$", promise, flags=re.MULTILINE)[1:]
    return {
        heading: [" ".join(item.split()) for item in re.split(r"^- ", body, flags=re.MULTILINE)[1:]]
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


@functools.cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def is_there(reference: str) -> bool:
    path, _, name = reference.partition("::")
    return name in functions(path) if name else any(exploit.name == path for exploit in EXPLOITS)


@pytest.mark.parametrize("heading", PROMISE)
def test_it_stands_in_these_words(heading: str) -> None:
    assert list(written()) == list(PROMISE)
    assert written()[heading] == list(PROMISE[heading])


@pytest.mark.parametrize(
    "reference",
    sorted({name for part in PROMISE.values() for references in part.values() for name in references}),
)
def test_what_holds_it_is_there(reference: str) -> None:
    assert is_there(reference)


def test_what_is_impossible_or_flagged_is_held_by_something() -> None:
    assert all(IMPOSSIBLE.values()) and all(FLAGGED.values())
    assert not is_there(f"{HERE}/test_promise.py::test_of_nothing") and not is_there("an attempt of nothing")
