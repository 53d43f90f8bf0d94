"""Rows, tables and remarks on the terminal, and the words for sizes and durations."""
