"""Wrong solutions of 4.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    "4.2": wrong(
        _SAVE,
        {
            "overwriting in place": (
                "overwriting in place",
                ("open(temporary, ", "open(path, "),
                (_RENAME, ""),
            ),
            "the old file removed first": (
                "emptied, or removed, before the new one is there",
                _RENAME,
                f"        path.unlink()\n{_RENAME}",
            ),
            "copied into place": (
                "overwriting in place",
                _RENAME,
                "        shutil.copyfile(temporary, path)\n        os.sync()\n",
            ),
            "moved from another disk": (
                "overwriting in place",
                ("import os\n", "import os\nimport tempfile\nfrom pathlib import Path\n"),
                ("path.with_name(path.name + ", "Path(tempfile.gettempdir(), path.name + "),
                ("os.replace(", "shutil.move("),
            ),
        },
    )
    + wrong(
        _BARE,
        {
            "half a temporary file left on a full disk": (
                "a temporary file is left behind",
                "WRITE",
                "with open(temporary, 'wb') as file:\n        file.write(content)",
            ),
            "a short write taken for a whole one": (
                "a short write is not noticed",
                "WRITE",
                "handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n"
                "    os.write(handle, content)\n    os.close(handle)",
            ),
        },
    )
    + wrong(
        _SAVE,
        {
            "no fsync": ("no fsync", _SYNC, ""),
            "fsync after the rename": (
                "the order is turned round",
                (_SYNC, ""),
                (
                    _RENAME,
                    f'{_RENAME}        with open(path, "rb+") as file:\n            os.fsync(file.fileno())\n',
                ),
            ),
            "a temporary file left behind": (
                "a temporary file is left behind",
                ("    try:\n", "    if True:\n"),
                ("    finally:\n        temporary.unlink(missing_ok=True)\n", ""),
            ),
            "an error swallowed": (
                "the error is swallowed",
                "    finally:\n",
                "    except Exception:\n        pass\n    finally:\n",
            ),
            "a thread that nobody waits for": (
                "no such file, or another content",
                ("import os\n", "import os\nimport threading\nimport time\n"),
                (
                    "    temporary = path",
                    "    threading.Thread(target=_save, args=(checkpoint, path)).start()\n\n"
                    "def _save(checkpoint, path):\n    time.sleep(0.01)\n    temporary = path",
                ),
            ),
        },
    )
}
