"""Compaction: the newest record of each key stays, at its offset; older ones go, in the background.

One pass over a log reads the part that is new since the last pass (dirty), notes the newest offset of every
key in it, and writes the closed segments again without what has been superseded. Nothing at or above the
last stable offset is compacted, and never the active segment. Not here: deleting old segments (`retention`).
"""
