from course_lib.training.memory import *  # noqa: F403
