"""What the solutions of lesson 04 are compared with: harness calls of workers that hold no learner's code."""

# Where our worker only runs the harness, its solution is never called.
CHECKPOINT = "RunCheckpoint = None\n"
SAVE = "save_atomically = None\n"
STOP_EARLY = "train_with_early_stopping = None\n"

CADENCE = '''
class Cadence:
    """Spends 5 % of the time in saves, exactly."""

    def __init__(self, max_lost_seconds, max_overhead, clock):
        self.max_overhead, self.clock = max_overhead, clock

    def saved(self, seconds):
        self.due_at = self.clock() + seconds * (1 - self.max_overhead) / self.max_overhead

    def is_due(self):
        return self.clock() >= self.due_at
'''
