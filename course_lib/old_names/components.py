from course_lib.runs.components import *  # noqa: F403
from course_lib.runs.using.predict import TrainedModel as TrainedModel
from course_lib.runs.using.predict import load_trained as load_trained
