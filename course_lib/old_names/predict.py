from course_lib.runs.using.predict import *  # noqa: F403
