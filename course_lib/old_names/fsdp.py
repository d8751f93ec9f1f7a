from course_lib.distributed.fsdp import *  # noqa: F403
