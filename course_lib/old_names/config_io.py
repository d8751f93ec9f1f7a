from course_lib.runs.config_io import *  # noqa: F403
