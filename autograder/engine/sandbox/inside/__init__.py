"""The two files that are shown to learner code's process: the worker and its wire."""
