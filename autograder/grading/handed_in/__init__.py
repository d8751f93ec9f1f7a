"""What students handed in: from folders and zips, whose it is, and into the course; and what goes back the same way."""
