from course_lib.training.schedules import *  # noqa: F403
