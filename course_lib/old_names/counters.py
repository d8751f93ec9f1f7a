from course_lib.measuring.counters import *  # noqa: F403
