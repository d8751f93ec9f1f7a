from course_lib.runs.config import *  # noqa: F403
