"""What is wrong with a project, with file and line, before anything runs.

Not here: running it.
"""
