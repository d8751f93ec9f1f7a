from course_lib.tuning.ladder import *  # noqa: F403
