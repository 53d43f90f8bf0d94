"""How much of a follower's log has to go before it agrees with its leader's (KIP-101, 279, 595). Pure.

By epochs, never by the high watermark. A leader that finds a follower's last epoch or offset in no place of
its own log names the largest epoch up to that one that it has, and where it ends. The follower cuts its log
to where both still may agree and asks again, until nothing diverges: one step is not enough where leaders
changed quickly. Nothing that is committed goes, unless an unclean election gave it up.
"""

from riverlog.model.ids import LeaderEpoch
from riverlog.storage.log.leader_epochs import LeaderEpochs


def offset_to_keep(own: LeaderEpochs, own_end: int, *, epoch: LeaderEpoch, end_offset: int) -> int:
    """Everything from here on goes, where the leader's `epoch` ends at `end_offset`."""
    known = own.end_offset_for(epoch, own_end)
    if known is None:
        return min(end_offset, own_end)
    own_epoch, own_epoch_end = known
    if own_epoch != epoch:
        # The leader's epoch is not in this log: what comes after the largest one before it is not the
        # leader's, and how far that one goes the next answer tells.
        return min(own_epoch_end, own_end)
    return min(own_epoch_end, end_offset, own_end)


def gives_up_committed(unclean_epoch: LeaderEpoch | None, followed_epoch: LeaderEpoch | None) -> bool:
    """Whether a replica may lose what was committed: a leader was elected that did not have all of it, after
    the last epoch of which this replica has a record."""
    return unclean_epoch is not None and (followed_epoch is None or unclean_epoch > followed_epoch)
