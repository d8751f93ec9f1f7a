from course_lib.runs.metrics import *  # noqa: F403
