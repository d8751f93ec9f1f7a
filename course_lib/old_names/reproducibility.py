from course_lib.training.reproducibility import *  # noqa: F403
