"""Carries out elections that are asked for or due, and the end of eligibility before a minimum changes.

Not here: the decisions (`elections`), and the elections that brokers cause who come and go (`caretaker`).
"""

from collections.abc import Collection, Iterable, Mapping

from riverlog.controller.caretaker import Caretaker
from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.elections import (
    Election,
    decide_election,
    decide_end_of_eligibility,
    decide_rebalance,
)
from riverlog.controller.decisions.leadership import NewState
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

Elected = Mapping[TopicPartition, Refusal | None]
"""`None` where a leader was elected."""


class LeaderChanges:
    def __init__(self, follower: MetadataFollower, caretaker: Caretaker) -> None:
        self._follower = follower
        self._caretaker = caretaker

    async def elect(self, term: Term, kind: Election, wanted: Collection[TopicPartition] | None) -> Elected:
        """With `None` for all partitions, of which those that need no election are left out."""
        image = self._follower.image
        leadership = self._caretaker.leadership(term)
        asked = _all_of(image.topics.values()) if wanted is None else wanted
        decided = {each: decide_election(image, leadership, *each, kind) for each in asked}
        states = [each for each in decided.values() if isinstance(each, NewState)]
        written = iter(await self._caretaker.write(term, states))
        outcomes = {
            each: next(written) if isinstance(outcome, NewState) else outcome
            for each, outcome in decided.items()
        }
        if wanted is not None:
            return outcomes
        return {each: refusal for each, refusal in outcomes.items() if not _is_needless(refusal)}

    async def rebalance(self, term: Term) -> int:
        """Give leadership back to preferred replicas; how many got it."""
        states = decide_rebalance(self._follower.image, self._caretaker.leadership(term))
        return (await self._caretaker.write(term, states)).count(None)

    async def end_eligibility(self, term: Term, topics: Iterable[str]) -> Refusal | None:
        """Returns what kept some of it from being written."""
        states = decide_end_of_eligibility(self._follower.image, term.epoch, topics)
        outcomes = await self._caretaker.write(term, states)
        return next((outcome for outcome in outcomes if outcome is not None), None)


def _all_of(topics: Iterable[TopicImage]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in range(len(topic.partitions))]


def _is_needless(refusal: Refusal | None) -> bool:
    return refusal is not None and refusal.error is ErrorCode.ELECTION_NOT_NEEDED
