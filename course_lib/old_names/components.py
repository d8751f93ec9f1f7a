from course_lib.runs.components import *  # noqa: F403
from course_lib.runs.predict import TrainedModel as TrainedModel
from course_lib.runs.predict import load_trained as load_trained
