from course_lib.runs.run_data import *  # noqa: F403
