"""Wrong solutions of 4.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

SAVE = """
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
RENAME = "        os.replace(temporary, path)\n"
_SYNC = "            file.flush()\n            os.fsync(file.fileno())\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "4.2": wrong(
        SAVE,
        {
            "overwriting in place": (
                "overwriting in place",
                ("open(temporary, ", "open(path, "),
                (RENAME, ""),
            ),
            "the old file removed first": (
                "emptied, or removed, before the new one is there",
                RENAME,
                f"        path.unlink(missing_ok=True)\n{RENAME}",
            ),
            "copied into place": (
                "overwriting in place",
                RENAME,
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
        SAVE,
        {
            "no fsync": ("no fsync", _SYNC, ""),
            "fsync before the last byte": (
                "before the last byte was written",
                (_SYNC, ""),
                ("            torch.save", "            os.fsync(file.fileno())\n            torch.save"),
            ),
            "an error of fsync swallowed": (
                "the error of `fsync` is swallowed",
                "            os.fsync(file.fileno())\n",
                "            try:\n                os.fsync(file.fileno())\n"
                "            except OSError:\n                pass\n",
            ),
            "an error of the rename swallowed": (
                "the error of the rename is swallowed",
                RENAME,
                "        try:\n    " + RENAME + "        except OSError:\n            pass\n",
            ),
            "written in place where the rename fails": (
                "where the rename fails it is written or copied in place",
                RENAME,
                "        try:\n    " + RENAME + "        except OSError:\n"
                "            shutil.copyfile(temporary, path)\n",
            ),
            "the checkpoint emptied once it is saved": (
                "the run goes on with it",
                RENAME,
                RENAME + '        checkpoint.pop("model")\n',
            ),
            "files of others cleaned up": (
                "a cleaning that takes files of others",
                "    temporary = path",
                '    for old in path.parent.glob("*.tmp"):\n        old.unlink()\n    temporary = path',
            ),
            "Ctrl-C turned into another error": (
                "Ctrl-C is turned into another error",
                "    finally:\n",
                "    except BaseException as error:\n        raise RuntimeError('not saved') from error\n"
                "    finally:\n",
            ),
            "removed first where the rename fails": (
                "emptied, or removed",
                RENAME,
                "        os.remove(path) if path.exists() else None\n" + RENAME,
            ),
            "a first save in place": (
                "a first save is written under its final name",
                "    temporary = path",
                "    if not path.exists():\n        with open(path, 'wb') as file:\n"
                "            torch.save(checkpoint, file)\n            file.flush()\n"
                "            os.fsync(file.fileno())\n        return\n    temporary = path",
            ),
            "stopped by what a killed save has left": (
                "a file of that name is in the way",
                'open(temporary, "wb")',
                'open(temporary, "xb")',
            ),
            "needs an older file": (
                "code that runs",
                "    temporary = path",
                "    path.stat()\n    temporary = path",
            ),
            "only tensors saved": (
                "in another format, or not all of it",
                "torch.save(checkpoint, file)",
                'torch.save({"step": checkpoint["step"], "model": checkpoint["model"]}, file)',
            ),
            "saved in 32 bits": (
                "in another format, or not all of it",
                "torch.save(checkpoint, file)",
                'checkpoint["optimizer"]["moments"] = checkpoint["optimizer"]["moments"].float()\n'
                "            torch.save(checkpoint, file)",
            ),
            "a suffix that the checkpoint may have": (
                "the temporary name can be the checkpoint's own",
                'path.with_name(path.name + ".tmp")',
                'path.with_suffix(".tmp")',
            ),
            "one temporary name for all": (
                "the temporary name can be the checkpoint's own",
                'path.with_name(path.name + ".tmp")',
                'path.with_name("half")',
            ),
            "a name that another file has": (
                "a temporary name that another file has",
                'path.with_name(path.name + ".tmp")',
                'path.with_name("best.pt")',
            ),
            "a dict that it knows not saved again": (
                "takes a dict that it knows for the same content",
                "    temporary = path",
                "    if getattr(save_atomically, 'last', None) is checkpoint:\n        return\n"
                "    save_atomically.last = checkpoint\n    temporary = path",
            ),
            "fsync after the rename": (
                "the order is turned round",
                (_SYNC, ""),
                (
                    RENAME,
                    f'{RENAME}        with open(path, "rb+") as file:\n            os.fsync(file.fileno())\n',
                ),
            ),
            "a temporary file left behind": (
                "a temporary file is left behind",
                ("    try:\n", "    if True:\n"),
                ("    finally:\n        temporary.unlink(missing_ok=True)\n", ""),
            ),
            "a temporary file left by Ctrl-C": (
                "a temporary file is left behind",
                "    finally:\n        temporary.unlink(missing_ok=True)\n",
                "    except Exception:\n        temporary.unlink(missing_ok=True)\n        raise\n",
            ),
            "an error at opening hidden": (
                "hidden by the one of removing what is not there",
                "    finally:\n        temporary.unlink(missing_ok=True)\n",
                "    except BaseException:\n        temporary.unlink()\n        raise\n",
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
