from course_lib.training.early_stopping import *  # noqa: F403
