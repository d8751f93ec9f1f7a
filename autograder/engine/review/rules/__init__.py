"""What a cell may not do, a kind of doing each."""
