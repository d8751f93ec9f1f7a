from course_lib.base.errors import *  # noqa: F403
