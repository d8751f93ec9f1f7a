"""The text of cells: where in a notebook the exercises are, what Python can read of them, and what says the same."""
