"""`python -m course_lib` is `course-lib`."""

import sys

from course_lib.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
