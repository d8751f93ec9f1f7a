from course_lib.training.micro_batch import *  # noqa: F403
