"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, as decisions and replay.

Not here: committed offsets (`groups.offsets`), groups of KIP-848 (`groups.consumer`).
"""
