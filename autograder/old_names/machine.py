from autograder.kernel.machine import *  # noqa: F403
