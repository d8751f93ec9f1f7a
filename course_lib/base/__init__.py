"""What every room may use: errors, files, caches, settings as text, the machine, figures and live output."""
