from autograder.grading.nbgrader.bridge import *  # noqa: F403
