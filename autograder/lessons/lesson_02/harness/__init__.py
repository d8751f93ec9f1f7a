"""What runs around a learner's solution in the sandbox, as text for the worker; what 2.5 repairs is in it."""
