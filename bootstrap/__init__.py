"""What `workbook.py` does before anything is installed. Standard library only, Python 3.11 or newer."""

from bootstrap.console import SetupError
from bootstrap.environment import ensure_environment

__all__ = ["SetupError", "ensure_environment"]
