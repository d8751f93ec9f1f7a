from course_lib.runs.ladder import *  # noqa: F403
