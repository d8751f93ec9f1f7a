"""Checks, harnesses and wrong solutions, a folder a lesson: loaded by name, never imported."""
