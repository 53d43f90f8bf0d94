"""Codecs written by hand, for the few shapes that most requests have: one partition of one topic.

Each of them gives what the tables give, message for message and byte for byte, and leaves to the tables every
other shape and anything that looks wrong. One is here only while a whole request is answered at least a tenth
sooner with it; `docs/adr/0009-own-wire-codec.md` has the figures. Not here: meaning, and general codecs.
"""
