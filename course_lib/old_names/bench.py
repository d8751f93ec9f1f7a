from course_lib.measuring.bench import *  # noqa: F403
