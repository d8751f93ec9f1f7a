"""What runs around a learner's solution in the sandbox, as text for the worker: this package never imports it."""
