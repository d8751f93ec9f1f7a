"""Where the learner's own files live, apart from the checkout."""

from __future__ import annotations

import os
from pathlib import Path


def data_directory() -> Path:
    """The folder of progress and evidence: `WORKBOOK_DATA`, else the platform's folder for user data."""
    if chosen := os.environ.get("WORKBOOK_DATA"):
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("training-workbook")
