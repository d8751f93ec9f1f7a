from course_lib.runs.progress import *  # noqa: F403
