"""What a notebook's cell calls."""
