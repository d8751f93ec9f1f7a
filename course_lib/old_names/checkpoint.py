from course_lib.training.checkpoint import *  # noqa: F403
