"""Measures, checks and grades the exercises of the Training Workbook."""
