"""What the verdict on speed allows; the words about it name the same numbers."""

MAX_ATTEMPTS = 5  # verdicts for one family of code on one machine
MAX_SPREAD = 0.15  # of the baseline against itself; above it the machine is unfit to time on
