"""Settings: what may be set, how it is read, and the slices that the parts of the broker are given.

`definitions` is the table of every key; `parse` turns text into `Settings`; `slices` holds the small frozen
objects that other layers use instead of a map of strings; `describe` and `alter` answer the config APIs.
Pure: text comes in, values go out. Files and the environment are read by `node` and `cli`.
"""
