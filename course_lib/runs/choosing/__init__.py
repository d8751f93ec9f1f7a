"""What to train where the config leaves it open, and what a linear model would reach."""
