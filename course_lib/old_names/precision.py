from course_lib.training.precision import *  # noqa: F403
