from course_lib.runs.predict import *  # noqa: F403
