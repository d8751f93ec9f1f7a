"""The names of the two folders, which a collector took from a file, a form or a person."""

from __future__ import annotations

import random
from functools import partial

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.hand_in import HandIn

#: `{id}` differs from hand-in to hand-in. What is like the name of a sound student must not touch them.
STUDENTS = (
    "{id}\x1b[31mred", "{id}\x07\x08\x7f", "{id}\x9b2J", "{id}\n  z-sound: error: no grade", "\n{id}",
    "{id}\r", "\t{id}", "{id}\u202emoc", "{id}\u2028x", "{id}\u200b", "{id}\ufeff", "{id}\udcff",
    "\udc80{id}", "é{id}", "e\u0301{id}", "{id}😀", "課程{id}", "{id} ", " {id}", "{id}.", ".{id}", "..{id}",
    "-{id}", "--help {id}", "{id}+x", "{id} a b", "{id},x", "{id};x", "{id}:x", "*{id}", "d-*", "d-?????",
    "[a-z]-sound", "?-sound", "*", "[!x]*", "{id}[", "{id}]", "{id}(", "{id})", "{id}|x", "{id}^$",
    "(?i){id}", "{id}.*", "{id}\\", "\\d+{id}", "{{student_id}}{id}", "{{0}}{id}", "{{{id}", "{id}}}",
    "%s{id}", "%(x)s{id}", "'{id}", "\"{id}", "{id}'; DROP TABLE student; --", "<b>{id}<b>", "<script>{id}",
    "&amp;{id}", "=1+1 {id}", "@{id}", "#{id}", "`id`{id}", "$(id){id}", "${{HOME}}{id}", "~{id}", "~", "CON",
    "nul.{id}", "{id}~1", "A-sound", "a-sound ", "a-sound.", "a-SOUND", "a-sound\u200b", "z-sound\n",
    "autograded", "submitted", "release", "source", "gradebook", "{long}{id}", "{long5}{id}", "00_start_here",
    "None", "null", "0", "1e5", "-1", "True", "{id}\u0130", "ﬁ{id}", "{id}\x1c\x1d\x1e", "{id}\xa0",
)  # fmt: skip
FOLDERS = (
    "{upper}", "{title}", "{slug} ", " {slug}", "{slug}.", "{slug} (1)", "{slug}-1", "{dashes}", "{spaces}",
    "{slug}\n", "{slug}\x1b[2J", "{slug}\u200b", "{slug}.zip", "{slug}_copy", "{slug}\udcff",
)  # fmt: skip


def _student(hand_in: HandIn, chance: random.Random, name: str) -> None:
    own = hand_in.student
    long5 = "é" * ((255 - len(own.encode("utf-8", "surrogateescape"))) // 2)
    hand_in.student = name.format(id=own, long="n" * (255 - len(own)), long5=long5)[:255]


_STUDENTS: dict[str, Change] = {ascii(name): partial(_student, name=name) for name in STUDENTS}
register_each("name", "the student is called", _STUDENTS, weight=3)


def _folder(hand_in: HandIn, chance: random.Random, name: str) -> None:
    slug = hand_in.folder
    dashes, spaces = slug.replace("_", "-"), slug.replace("_", " ")
    hand_in.folder = name.format(
        slug=slug, upper=slug.upper(), title=slug.title(), dashes=dashes, spaces=spaces
    )


_FOLDERS: dict[str, Change] = {ascii(name): partial(_folder, name=name) for name in FOLDERS}
register_each("name", "the folder is called", _FOLDERS)


@damage("name", weight=4)
def the_folder_is_a_link_to_another_students(hand_in: HandIn, chance: random.Random) -> None:
    hand_in.is_link = chance.choice(
        [f"../z-sound/{hand_in.folder}", "..", "/", ".", hand_in.folder, "nowhere", "/proc"]
    )
    hand_in.may_earn = False
