"""Measurements whose results the project states. Run by hand; nothing here is a test."""
