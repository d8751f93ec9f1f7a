"""nbgrader settings of this course. Run `nbgrader ...` in the folder of this file.

Everything is stock nbgrader except one step of `nbgrader autograde`: the notebook is not executed in a
kernel, it is measured by the workbook's own checks in separate, sandboxed processes.
"""

from pathlib import Path

from autograder import nbgrader_bridge as bridge

course_root = Path(__file__).resolve().parent
bridge.prepare_environment()

c = get_config()  # noqa: F821  (nbgrader puts it here)

c.CourseDirectory.course_id = "training-workbook"
c.CourseDirectory.root = str(course_root)

# What a learner sees in place of a solution.
c.ClearSolutions.code_stub = {"python": bridge.CODE_STUB}

# The release is committed, and nbgrader would skip what exists without writing it to the gradebook.
c.GenerateAssignment.force = True

# nbgrader would leave a page of feedback as it is, whatever came since: a comment, points by hand, a corrected check.
c.GenerateFeedback.force = True

# A page of feedback loads nothing from the network, and shows what a student asked about the grade.
c.GenerateFeedback.exporter_class = bridge.Page
c.GenerateFeedback.preprocessors = bridge.FEEDBACK_PREPROCESSORS

# The answers file travels with a submission; an instructor's own must never reach a learner.
c.GenerateAssignment.post_convert_hook = "autograder.nbgrader_bridge.withhold_answers"
c.Autograde.exclude_overwriting = bridge.answers_files(course_root)

# nbgrader's own lists, in order: `RestoreCells`, `PlainTexts` and `PlainCode` are added, and `MeasuredGrades` stands
# for `Execute`.
c.Autograde.sanitize_preprocessors = bridge.SANITIZE_PREPROCESSORS
c.Autograde.autograde_preprocessors = bridge.AUTOGRADE_PREPROCESSORS

# Why a person should look at a solution is for whoever teaches. With this, students read it on their pages, too.
# c.Flags.on_students_pages = True

# nbgrader's own table writes a name as it is, and a spreadsheet runs what begins as a formula does.
c.ExportApp.plugin_class = "autograder.grading.exports.Csv"

# A submission is not graded where the sandbox is weaker than this. Strongest first: "bubblewrap", "landlock", "limits".
# Without it, grades are given at the level that the machine has, and each records which. `workbook doctor` shows it.
# c.MeasuredGrades.require_sandbox = "bubblewrap"
