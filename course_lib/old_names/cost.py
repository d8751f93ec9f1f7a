from course_lib.runs.watching.cost import *  # noqa: F403
