"""Where things are: the learner's own files, apart from the checkout, and the notebooks as they are released."""

from __future__ import annotations

import os
from pathlib import Path

from course_lib.base import UserError

START_PAGE = Path("00_start_here", "00_start_here.ipynb")


def data_directory() -> Path:
    """The folder of progress and evidence: `WORKBOOK_DATA`, else the platform's folder for user data."""
    if chosen := os.environ.get("WORKBOOK_DATA"):
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("training-workbook")


def release_folder() -> Path:
    """Where the release notebooks are: inside the installed package, or in the checkout it runs from.

    Raises UserError where neither has them.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "release", package.parent / "notebooks" / "release"):
        if (folder / START_PAGE).is_file():
            return folder
    raise UserError("the release notebooks are not here; in a checkout, make them with: workbook build")


def default_folder() -> Path:
    """The learner's folder: `WORKBOOK_DIR`, else `training-workbook` in the home folder."""
    return Path(os.environ.get("WORKBOOK_DIR") or Path.home() / "training-workbook").expanduser()
