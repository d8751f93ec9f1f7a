"""The checks of the mini project."""
