from autograder.kernel.lab import *  # noqa: F403
