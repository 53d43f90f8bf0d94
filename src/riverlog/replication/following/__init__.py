"""Following leaders: copying their partitions into the logs of this node.

`session` says what to ask of one leader, `batches` what of an answer may be stored, `truncation` how much of
the own log has to go first; all three are pure. `copies` does it to the partitions, `fetcher` talks to one
leader, `following` keeps a fetcher for each leader that the image names. Not here: what a leader makes of the
fetches of its followers, and who is in sync.
"""
