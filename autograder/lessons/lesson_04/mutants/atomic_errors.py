"""Wrong solutions of 4.2 where a save fails late, or is of something small or known, each with what is named."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_04.mutants.atomic import RENAME, SAVE

_CLEAN = "    finally:\n        temporary.unlink(missing_ok=True)\n"
_NAMED = "    temporary = path"
_FSYNC = "            os.fsync(file.fileno())\n"
_GUARDED = "    except OSError:\n        temporary.unlink(missing_ok=True)\n        raise\n"

MUTANTS: tuple[Mutant, ...] = wrong(
    SAVE,
    {
        "a temporary file left by Ctrl-C at fsync": (
            "where Ctrl-C came at fsync",
            (
                "            torch.save(checkpoint, file)\n",
                "            try:\n                torch.save(checkpoint, file)\n            except BaseException:\n"
                "                temporary.unlink()\n                raise\n",
            ),
            (_CLEAN, _GUARDED.replace("unlink()", "unlink(missing_ok=True)")),
        ),
        "a temporary file left by Ctrl-C at the rename": (
            "where Ctrl-C came at rename",
            (
                RENAME,
                "    except BaseException:\n        temporary.unlink(missing_ok=True)\n        raise\n    try:\n"
                + RENAME,
            ),
            (_CLEAN, _GUARDED),
        ),
        "Ctrl-C at fsync turned into another error": (
            "Ctrl-C is turned into another error",
            _FSYNC,
            "            try:\n    " + _FSYNC + "            except BaseException as error:\n"
            '                raise OSError("not on the disk") from error\n',
        ),
        "written in place where no file can be made": (
            "where the temporary file cannot be opened it is written in place",
            _CLEAN,
            "    except OSError:\n        if temporary.exists():\n            raise\n"
            "        torch.save(checkpoint, path)\n" + _CLEAN,
        ),
        "an empty file where the first save fails": (
            "none is what it was",
            _CLEAN,
            "    except OSError:\n        path.touch()\n        raise\n" + _CLEAN,
        ),
        "the same step not saved again": (
            "or a step or a size",
            _NAMED,
            "    if path.exists() and torch.load(path)['step'] == checkpoint.get('step'):\n        return\n"
            + _NAMED,
        ),
        "the same size taken for the same content": (
            "or a step or a size",
            RENAME,
            "        if path.exists() and path.stat().st_size == temporary.stat().st_size:\n            return\n"
            + RENAME,
        ),
        "an empty checkpoint not saved": (
            "an empty dict is taken for nothing to save",
            _NAMED,
            "    if not checkpoint:\n        return\n" + _NAMED,
        ),
        "no fsync of a small file": ("no fsync", _FSYNC, "            if file.tell() > 8192:\n    " + _FSYNC),
        "files cleaned up whose name begins so": (
            "a cleaning that takes files of others",
            _NAMED,
            "    for old in path.parent.glob(f'{path.stem}.*.tmp'):\n        old.unlink()\n" + _NAMED,
        ),
    },
)
