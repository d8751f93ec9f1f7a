from course_lib.base.environment import *  # noqa: F403
