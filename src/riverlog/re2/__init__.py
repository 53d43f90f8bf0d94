"""Topic patterns in RE2's syntax, matched in time linear in the text, as KIP-848 promises.

Not here: anything that knows of groups or topics. Standard library only.
"""
