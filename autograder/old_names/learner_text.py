from autograder.grading.nbgrader.learner_text import *  # noqa: F403
