from course_lib.training.optim import *  # noqa: F403
