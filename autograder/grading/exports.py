from autograder.grading.nbgrader.exports import *  # noqa: F403
