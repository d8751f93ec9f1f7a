from course_lib.measuring.profiling import *  # noqa: F403
