from autograder.show.plots import *  # noqa: F403
