from course_lib.runs.compare import *  # noqa: F403
