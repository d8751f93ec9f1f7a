"""A run from config to report: one folder that says what was trained, how it went and what it cost."""
