from course_lib.models.lora import *  # noqa: F403
