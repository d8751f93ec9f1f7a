from autograder.learner.progress_view import *  # noqa: F403
