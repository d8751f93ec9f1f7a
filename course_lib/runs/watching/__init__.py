"""Runs looked at: what they cost, whether they are healthy, and all of a folder on one page."""
