from course_lib.base.settings import *  # noqa: F403
from course_lib.cli.common import parse_settings as parse_settings
from course_lib.runs.config import read_config as read_config
