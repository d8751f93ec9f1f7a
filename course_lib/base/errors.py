"""The one exception that a user, rather than a programmer, is meant to read."""

from __future__ import annotations

import importlib
from typing import Any


class UserError(ValueError):
    """Something the user gave cannot be used; the message says what and how to mend it.

    The message is always one line (line breaks and runs of spaces are folded), so that a command line can
    print it as it is and exit with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def require(module: str, *, extra: str = "") -> Any:
    """Import a package where it is used.

    Raises UserError where it is absent, with what to install: the extra that brings it. Without an `extra` it comes
    with the library, and is absent where that was installed without what it depends on.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        wanted = f'"training-workbook[{extra}]"' if extra else "training-workbook"
        raise UserError(f"this needs the package {module.partition('.')[0]}: pip install {wanted}") from None
