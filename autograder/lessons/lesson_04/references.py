"""A right and fast solution of lesson 04's timed exercise: `workbook calibrate` measures what it reaches here."""

CADENCE = """
class Cadence:
    # As rarely as the limit allows, or as the budget does where that is rarer.
    def __init__(self, max_lost_seconds, max_overhead, clock):
        self.max_lost_seconds, self.max_overhead, self.clock = max_lost_seconds, max_overhead, clock

    def saved(self, seconds):
        wait = max(self.max_lost_seconds, seconds / self.max_overhead)
        self.due_at = self.clock() + wait

    def is_due(self):
        return self.clock() >= self.due_at
"""
