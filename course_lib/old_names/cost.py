from course_lib.runs.cost import *  # noqa: F403
