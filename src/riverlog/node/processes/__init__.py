"""What nodes need as processes: an event loop, log lines, and what several brokers of one host have to share
out: numbers, ports and directories, under a supervisor.

Not here: what a node is made of.
"""
