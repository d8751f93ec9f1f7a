"""Wrong solutions of 4.1 that write or read their file otherwise than they should, each with what is named."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_04.mutants.resume import CHECKPOINT, PUT_BACK, WRITE

MUTANTS: tuple[Mutant, ...] = wrong(
    CHECKPOINT,
    {
        "appended to the older save": (
            "behind what stands in it",
            WRITE,
            '        with open(path, "ab") as file:\n            torch.save(saved, file)\n',
        ),
        "written over the beginning of the older file": (
            "over the beginning of the old one",
            WRITE,
            '        with open(path, "r+b" if path.exists() else "wb") as file:\n            torch.save(saved, file)\n',
        ),
        "a suffix of its own": ("under another name", "(saved, path)", '(saved, path.with_suffix(".pt"))'),
        "nothing written where a file is": (
            "writes nothing where a file is",
            WRITE,
            "        if not path.exists():\n    " + WRITE,
        ),
        "a copy beside it": (
            "beside it",
            WRITE,
            WRITE + '        torch.save(saved, path.with_name("backup.pt"))\n',
        ),
        "an error of save swallowed": (
            "train on for hours without a checkpoint",
            WRITE,
            "        try:\n    " + WRITE + "        except Exception:\n            pass\n",
        ),
        "an error of load swallowed": (
            "the run would begin anew",
            "        saved = torch.load(path, weights_only=True)\n",
            "        try:\n            saved = torch.load(path, weights_only=True)\n"
            "        except Exception:\n            return 0\n",
        ),
        "an error of a part swallowed": (
            "go on with half of its state",
            PUT_BACK,
            "            try:\n    " + PUT_BACK + "            except Exception:\n                pass\n",
        ),
        "a file beside it": (
            "a part of the run is written into a file of its own",
            (WRITE, '        torch.save(saved.pop("torch"), f"{path}.rng")\n' + WRITE),
            ('saved["torch"])', 'torch.load(f"{path}.rng"))'),
        ),
        "records read until the file ends": (
            "a file that ends early is taken for a whole one",
            (
                WRITE,
                '        with open(path, "wb") as file:\n'
                "            for item in saved.items():\n"
                "                record = io.BytesIO()\n"
                "                torch.save(item, record)\n"
                '                file.write(len(record.getvalue()).to_bytes(8, "big") + record.getvalue())\n',
            ),
            (
                "        saved = torch.load(path, weights_only=True)\n",
                "        content, saved = path.read_bytes(), {}\n"
                "        while content:\n"
                '            end = 8 + int.from_bytes(content[:8], "big")\n'
                "            key, value = torch.load(io.BytesIO(content[8:end]), weights_only=True)\n"
                "            saved[key], content = value, content[end:]\n",
            ),
            (
                '        torch.set_rng_state(saved["torch"])\n',
                '        if "torch" in saved:\n            torch.set_rng_state(saved["torch"])\n',
            ),
        ),
    },
)
