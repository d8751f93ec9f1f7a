"""The commands of `course-lib`, one module each. Nothing heavy is imported until a command runs."""
