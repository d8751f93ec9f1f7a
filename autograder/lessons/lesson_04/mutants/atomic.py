"""Wrong solutions of 4.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_SAVE = """
import os
import shutil
import torch

@exercise("4.2")
def save_atomically(checkpoint, path):
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save(checkpoint, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
"""
_BARE = """
import io
import os
import torch

@exercise("4.2")
def save_atomically(checkpoint, path):
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    content, temporary = buffer.getvalue(), path.with_name(path.name + ".tmp")
    WRITE
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
"""
_RENAME = "        os.replace(temporary, path)\n"
_SYNC = "            file.flush()\n            os.fsync(file.fileno())\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.2": (
        Mutant(
            name="overwriting in place",
            source=edited(_SAVE, ("open(temporary, ", "open(path, "), (_RENAME, "")),
            says="overwriting in place",
        ),
        Mutant(
            name="the old file removed first",
            source=edited(_SAVE, (_RENAME, f"        path.unlink()\n{_RENAME}")),
            says="emptied, or removed, before the new one is there",
        ),
        Mutant(
            name="copied into place",
            source=edited(_SAVE, (_RENAME, "        shutil.copyfile(temporary, path)\n        os.sync()\n")),
            says="overwriting in place",
        ),
        Mutant(
            name="moved from another disk",
            source=edited(
                _SAVE,
                ("import os\n", "import os\nimport tempfile\nfrom pathlib import Path\n"),
                ("path.with_name(path.name + ", "Path(tempfile.gettempdir(), path.name + "),
                ("os.replace(", "shutil.move("),
            ),
            says="overwriting in place",
        ),
        Mutant(
            name="half a temporary file left on a full disk",
            source=_BARE.replace("WRITE", "with open(temporary, 'wb') as file:\n        file.write(content)"),
            says="a temporary file is left behind",
        ),
        Mutant(
            name="a short write taken for a whole one",
            source=_BARE.replace(
                "WRITE",
                "handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n"
                "    os.write(handle, content)\n    os.close(handle)",
            ),
            says="a short write is not noticed",
        ),
        Mutant(name="no fsync", source=edited(_SAVE, (_SYNC, "")), says="no fsync"),
        Mutant(
            name="fsync after the rename",
            source=edited(
                _SAVE,
                (_SYNC, ""),
                (
                    _RENAME,
                    f'{_RENAME}        with open(path, "rb+") as file:\n            os.fsync(file.fileno())\n',
                ),
            ),
            says="the order is turned round",
        ),
        Mutant(
            name="a temporary file left behind",
            source=edited(
                _SAVE,
                ("    try:\n", "    if True:\n"),
                ("    finally:\n        temporary.unlink(missing_ok=True)\n", ""),
            ),
            says="a temporary file is left behind",
        ),
        Mutant(
            name="an error swallowed",
            source=edited(_SAVE, ("    finally:\n", "    except Exception:\n        pass\n    finally:\n")),
            says="the error is swallowed",
        ),
        Mutant(
            name="a thread that nobody waits for",
            source=edited(
                _SAVE,
                ("import os\n", "import os\nimport threading\nimport time\n"),
                (
                    "    temporary = path",
                    "    threading.Thread(target=_save, args=(checkpoint, path)).start()\n\n"
                    "def _save(checkpoint, path):\n    time.sleep(0.01)\n    temporary = path",
                ),
            ),
            says="no such file, or another content",
        ),
    ),
}
