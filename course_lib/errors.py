"""The one error that a user of the command line sees as a single line instead of a traceback."""

from __future__ import annotations


class UserError(ValueError):
    """What the user gave cannot be used. The message is one line: what is wrong, where, and the fix."""
