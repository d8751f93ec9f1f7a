"""The command `workbook`."""
