from course_lib.runs.components import RunData as RunData
from course_lib.runs.components import load_data as load_data
