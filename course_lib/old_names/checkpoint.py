from course_lib.runs.compare import check_same_run as check_same_run
from course_lib.training.checkpoint import *  # noqa: F403
