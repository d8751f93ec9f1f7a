from course_lib.runs.compare import check_same_config as check_same_config
from course_lib.runs.compare import differences as differences
from course_lib.runs.config import *  # noqa: F403
