from course_lib.base.live import *  # noqa: F403
from course_lib.runs.record import LivePlot as LivePlot
from course_lib.runs.record import ProgressBar as ProgressBar
