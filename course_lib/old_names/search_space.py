from course_lib.tuning.search_space import *  # noqa: F403
