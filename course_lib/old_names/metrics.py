from course_lib.runs.folder import RunFolder as RunFolder
from course_lib.runs.record import *  # noqa: F403
from course_lib.training.scores import *  # noqa: F403
