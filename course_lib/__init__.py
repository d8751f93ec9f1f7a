"""A training library for PyTorch: fast loops, honest measurements, reproducible runs."""
