"""One module per command (or family of subcommands). Each is imported when its command is asked for.

Not here: anything that two commands share.
"""
