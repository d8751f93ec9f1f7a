"""A class of submissions: found, checked side by side, each piece of work once, and graded in nbgrader's gradebook."""
