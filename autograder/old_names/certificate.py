from autograder.learner.certificate import *  # noqa: F403
