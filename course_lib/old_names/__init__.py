"""Import names of before course_lib had rooms, one line each: notebooks and courses that were released then use them.

`course_lib.NAME` finds `old_names/NAME.py` (the package's `__path__` holds this folder); tests/test_faces.py
imports each.
"""
