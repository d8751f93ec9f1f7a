"""What the course promises of a GPU, line by line, each with what it must reach to pass.

    python -m tests.benchmarks.gpu [--parts NAME …] [--device cuda:1] [--out FILE.json] [--seconds 600] [--quick]

Needs torch and NumPy alone, and takes ten minutes at most. Every part runs in a process of its own with a limit of its
own, and every line in its own try: what fails is a row of the table, and the rest goes on. Without a GPU the lines that
need one say so, and the others run on the CPU. Prints a Markdown table with device and versions, for RESULTS.md;
`--out` writes the same with all numbers as JSON. Exit code 1 when a line has failed.
"""
