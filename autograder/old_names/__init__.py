"""Import names of before autograder had rooms, one line each: notebooks and courses that were released then use them.

`autograder.NAME` finds `old_names/NAME.py` (the package's `__path__` holds this folder); tests/test_faces.py
imports each.
"""
