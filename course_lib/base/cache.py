"""Where built data is kept, and the hash by which it is found again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from pathlib import Path

from course_lib.base.errors import UserError, require


def cache_dir() -> Path:
    """The folder for built data: `$COURSE_LIB_CACHE`, else the user's cache folder. Created when missing.

    Raises:
        UserError: the folder cannot be created. A read-only one is fine until something must be built.
    """
    chosen = os.environ.get("COURSE_LIB_CACHE")
    if chosen:
        path = Path(chosen).expanduser().absolute()
    else:
        path = Path(require("platformdirs").user_cache_path("training-workbook", appauthor=False))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fix = "Free space or rights there, or set COURSE_LIB_CACHE to a folder that you can write to"
        raise UserError(f"cannot make the folder {path}: {error.strerror or error}. {fix}") from error
    return path


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, as hexadecimal. Lengths are hashed too, so ("ab", "c") differs from ("a", "bc")."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


def project_version() -> str:
    """The version of this project, as pyproject.toml has it and its installation records it."""
    return installed_version("training-workbook") or "unknown (not installed)"


def installed_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
