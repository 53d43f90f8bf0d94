"""An operator: gives up what nobody has any more, so that the partitions are led again."""

from collections.abc import Callable

from riverlog.model.errors import ErrorCode
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

_UNCLEAN = 1


class Operator(SimulatedClient):
    kind = "operator"

    def __init__(self, around: Surroundings, give_up: Callable[[], list[tuple[str, int]]]) -> None:
        """`give_up` names the partitions of which nobody in sync is left, and takes note that they are given
        up."""
        super().__init__(around)
        self._give_up = give_up

    async def operate(self) -> None:
        await self.pause(1.0)
        self.completed_since_heal += 1  # Mostly there is nothing to be done.
        for topic, index in self._give_up():
            request = ElectLeadersRequest(
                election_type=_UNCLEAN,
                topic_partitions=[TopicPartitions(topic=topic, partitions=[index])],
                timeout_ms=3000,
            )
            reply = await self.ask(ApiKey.ELECT_LEADERS, 2, request)
            code = reply.error_code
            if not code and reply.replica_election_results:
                code = reply.replica_election_results[0].partition_result[0].error_code
            if code in (0, ErrorCode.ELECTION_NOT_NEEDED):
                self.done("gave up a partition", at=f"{topic}-{index}")
            else:
                self.refused("elect leaders", code, at=f"{topic}-{index}")
                self._routes.go_anywhere()
