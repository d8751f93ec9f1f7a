"""What runs around the mini project's solutions in the sandbox."""
