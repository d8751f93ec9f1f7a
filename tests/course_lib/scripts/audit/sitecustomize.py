"""Loaded by every Python process that has this folder on its path: notes which files it opens to write."""

import os
import sys
from pathlib import Path

LOG, WATCHED = os.environ.get("AUDIT_LOG", ""), os.environ.get("AUDIT_WATCHED", "")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def note(event, arguments):
    if event == "open" and arguments[2] & WRITES and str(arguments[0]).startswith(WATCHED):
        with Path(f"{LOG}-{os.environ.get('RANK', 'none')}").open("a") as file:
            file.write(f"{arguments[0]}\n")


if LOG and WATCHED:
    sys.addaudithook(note)
