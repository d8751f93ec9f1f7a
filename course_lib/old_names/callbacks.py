from course_lib.training.callbacks import *  # noqa: F403
