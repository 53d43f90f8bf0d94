"""The `Disk` port on the operating system: local files, failures of a directory, the bound on open files.

Not here: the names and formats of files (`storage.files`).
"""
