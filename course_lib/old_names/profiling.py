from course_lib.measuring.stages import *  # noqa: F403
from course_lib.training.callbacks import StepProfiler as StepProfiler
