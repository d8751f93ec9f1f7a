from course_lib.measuring.counters import *  # noqa: F403
from course_lib.measuring.counts import Counts as Counts
