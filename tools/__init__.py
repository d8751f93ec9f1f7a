"""What makers of the course run, and learners never need. Run from the checkout: `python -m tools.<name>`."""
