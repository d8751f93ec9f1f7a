from autograder.grading.nbgrader import *  # noqa: F403
