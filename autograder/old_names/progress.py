from autograder.kept.progress import *  # noqa: F403
