from autograder.notebooks.pytest_plugin import *  # noqa: F403
