"""A trained run in use: what it says of texts and tables, how good it is, and what a further run makes of it."""
