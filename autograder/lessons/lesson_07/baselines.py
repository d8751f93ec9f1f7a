"""The frozen baselines of lesson 07: the sick runs, under the name that the learner's class has."""

from __future__ import annotations

from pathlib import Path

SICK_RUNS = Path(__file__).with_name("sick_runs.py").read_text(encoding="utf-8") + "\n\nWard = SickRuns\n"

UNCHANGED = '''
def two_changes(settings):
    """The settings as they are: this worker trains what the check gives it."""
    return settings
'''
