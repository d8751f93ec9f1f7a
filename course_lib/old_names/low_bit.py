from course_lib.models.low_bit import *  # noqa: F403
