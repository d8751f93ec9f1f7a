from course_lib.training.loop import *  # noqa: F403
