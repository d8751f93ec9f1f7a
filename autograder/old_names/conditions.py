from autograder.engine.timing.conditions import *  # noqa: F403
