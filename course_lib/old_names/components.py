from course_lib.runs.components import *  # noqa: F403
