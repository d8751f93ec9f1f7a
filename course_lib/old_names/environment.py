from course_lib.base.machine import *  # noqa: F403
