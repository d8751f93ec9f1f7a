"""The one exception that a user, rather than a programmer, is meant to read."""

from __future__ import annotations


class UserError(ValueError):
    """Something the user gave cannot be used; the message says what and how to mend it.

    The message is always one line (line breaks and runs of spaces are folded), so that a command line can
    print it as it is and exit with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
