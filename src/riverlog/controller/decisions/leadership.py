"""Which partitions need another state: who leads and who is in sync as brokers come and go. Pure.

A leader leads under the registration it had when it was elected (`leader_broker_epoch`). One that has come
back since is elected again under the next leader epoch, so that it never leads on under the old one. Brokers
that are gone or about to go leave an ISR that has other members; the last one stays in it, since it may come
back with all that is committed. The leader comes from the ISR, then from the eligible leader replicas
(KIP-966), then it is the last one known, then, where the topic allows that, any replica that is alive; else
there is none. A broker whose directory of a partition has failed counts as gone there. The state that a
half-made topic lacks is made here as well. A state that is older than the logs decides nothing: who leads
then is known to `older_states`.

A node that has its store to itself is the only broker there can be: it leads as it did before a restart.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from riverlog.controller.decisions.assignments import Replicas
from riverlog.controller.decisions.older_states import ReplicaEnds, is_older, led_by_the_furthest
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage
from riverlog.metadata.partition_states import after_isr_change, node_of
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId

Brokers = Mapping[NodeId, BrokerImage]


class ElectionRules(NamedTuple):
    """What a topic's settings say about elections."""

    min_isr: int = 1
    allows_unclean: bool = False


DEFAULT_RULES: Final = ElectionRules()
NO_LOG_ENDS: Final[ReplicaEnds] = {}


class NewState(NamedTuple):
    topic: str
    partition: int
    expected_version: int | None
    """Of the state that is replaced; `None` where there is none yet."""
    node: PartitionNode


class Leadership(NamedTuple):
    """What an election is decided by beside the partition itself."""

    brokers: Brokers
    controller_epoch: int
    is_alone: bool = False
    rules: Callable[[str], ElectionRules] = lambda topic: DEFAULT_RULES
    """Of a topic, by its name."""
    log_ends: ReplicaEnds = NO_LOG_ENDS
    """Of one partition, see `at`."""

    def at(self, topic_id: TopicId, index: int) -> "Leadership":
        """For one partition: where its directory has failed, a broker is as good as gone."""
        if not any(each.offline or each.log_ends for each in self.brokers.values()):
            return self
        key = (topic_id, index)
        able = {node_id: each for node_id, each in self.brokers.items() if key not in each.offline}
        ends = {node_id: each.log_ends[key] for node_id, each in able.items() if key in each.log_ends}
        return self._replace(brokers=able, log_ends=ends)

    def first_state(self, replicas: Replicas) -> PartitionNode:
        """Of a partition that is new: its first replica that is alive leads those that are."""
        isr = tuple(filter(self._stays, replicas)) or tuple(filter(self._is_alive, replicas))
        leader = isr[0] if isr else None
        return PartitionNode(
            leader, LeaderEpoch(0), isr or replicas, self.controller_epoch, self._registration(leader)
        )

    def is_settled(self, partition: PartitionImage) -> bool:
        """Whether there is surely nothing to be done; a quick look, because nearly all of them are."""
        is_in_order = self._is_led(partition) and not partition.elr and all(map(self._stays, partition.isr))
        return is_in_order and not is_older(partition, self.log_ends)

    def next_state(
        self, partition: PartitionImage, rules: ElectionRules = DEFAULT_RULES
    ) -> PartitionNode | None:
        """The state that it should have; `None` when that is the one it has."""
        if is_older(partition, self.log_ends):
            return self._led_by_the_furthest(partition, rules)
        isr = self._kept(partition.isr)
        if self._is_led(partition) and partition.leader in isr and not self._should_hand_over(partition):
            node = after_isr_change(partition, isr, rules.min_isr)
            return None if node == node_of(partition) else self._signed(node)
        for is_fit in (self._stays, self._is_alive):
            if (leader := _first(partition.replicas, isr, is_fit)) is not None:
                return self._led_by(leader, partition, after_isr_change(partition, isr, rules.min_isr))
            if (leader := _first(partition.replicas, partition.elr, is_fit)) is not None:
                return self._led_by(leader, partition, after_isr_change(partition, [leader], rules.min_isr))
        if (leader := self._last_known(partition)) is not None:
            return self._led_uncleanly_by(leader, partition, rules)
        if rules.allows_unclean and (state := self.unclean_state(partition, rules)) is not None:
            return state
        if partition.leader is None:
            return None
        return self._led_by(None, partition, node_of(partition))

    def preferred_state(self, partition: PartitionImage, rules: ElectionRules) -> PartitionNode | None:
        """Led by its first replica; `None` where that one is not fit to lead, or leads already."""
        preferred = partition.replicas[0]
        if is_older(partition, self.log_ends):
            return None
        if preferred == partition.leader or preferred not in partition.isr or not self._stays(preferred):
            return None
        return self._led_by(preferred, partition, after_isr_change(partition, partition.isr, rules.min_isr))

    def unclean_state(self, partition: PartitionImage, rules: ElectionRules) -> PartitionNode | None:
        """Led by any replica that is alive, which may lack committed data; `None` where none is."""
        if is_older(partition, self.log_ends):
            return self._led_by_the_furthest(partition, rules, without_others=True)
        for is_fit in (self._stays, self._is_alive):
            if (leader := _first(partition.replicas, partition.replicas, is_fit)) is not None:
                return self._led_uncleanly_by(leader, partition, rules)
        return None

    def _led_by_the_furthest(
        self, partition: PartitionImage, rules: ElectionRules, *, without_others: bool = False
    ) -> PartitionNode | None:
        """`None` where the state says so already."""
        node = led_by_the_furthest(partition, self.log_ends, rules.min_isr, without_others=without_others)
        if node == node_of(partition):
            return None
        return self._signed(node)._replace(leader_broker_epoch=self._registration(node.leader))

    def _kept(self, isr: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        """Who stays in an ISR: never nobody, where there was somebody."""
        return tuple(filter(self._stays, isr)) or tuple(filter(self._is_alive, isr)) or isr

    def _last_known(self, partition: PartitionImage) -> NodeId | None:
        if partition.isr or partition.elr or len(partition.last_known_elr) != 1:
            return None
        return _first(partition.replicas, partition.last_known_elr, self._is_alive)

    def _should_hand_over(self, partition: PartitionImage) -> bool:
        """Whether the leader is about to go, and is not the only one that can lead."""
        assert partition.leader is not None
        return not self._stays(partition.leader) and any(map(self._stays, partition.elr))

    def _led_by(self, leader: NodeId | None, partition: PartitionImage, node: PartitionNode) -> PartitionNode:
        return self._signed(node)._replace(
            leader=leader,
            leader_epoch=LeaderEpoch(partition.leader_epoch + 1),
            leader_broker_epoch=self._registration(leader),
        )

    def _led_uncleanly_by(
        self, leader: NodeId, partition: PartitionImage, rules: ElectionRules
    ) -> PartitionNode:
        """What the others have may be another history from here on."""
        alone = after_isr_change(partition, [leader], rules.min_isr, incomplete=partition.replicas)
        node = self._led_by(leader, partition, alone._replace(last_known_elr=()))
        return node._replace(unclean_epoch=node.leader_epoch)

    def _is_led(self, partition: PartitionImage) -> bool:
        leader = partition.leader
        if leader is None or leader not in self.brokers:
            return False
        return self.is_alone or partition.leader_broker_epoch == self.brokers[leader].epoch

    def _is_alive(self, node_id: NodeId) -> bool:
        return node_id in self.brokers

    def _stays(self, node_id: NodeId) -> bool:
        broker = self.brokers.get(node_id)
        return broker is not None and not broker.is_shutting_down

    def _signed(self, node: PartitionNode) -> PartitionNode:
        return node._replace(controller_epoch=self.controller_epoch)

    def _registration(self, leader: NodeId | None) -> BrokerEpoch | None:
        return None if leader is None or self.is_alone else self.brokers[leader].epoch


def decide_states(image: ClusterImage, leadership: Leadership, topics: Iterable[str]) -> Iterator[NewState]:
    """The states to be written, of these topics as far as there are such."""
    for name in topics:
        topic = image.topics.get(name)
        if topic is None:
            continue
        for index, partition in enumerate(topic.partitions):
            here = leadership.at(topic.topic_id, index)
            if partition.partition_epoch < 0:
                yield NewState(name, index, None, here.first_state(partition.replicas))
            elif here.is_settled(partition):
                continue
            elif (node := here.next_state(partition, leadership.rules(name))) is not None:
                yield NewState(name, index, partition.partition_epoch, node)


def leads_what_others_could(image: ClusterImage, node_id: NodeId) -> bool:
    """Whether a broker that is about to go leads partitions that the controller will give to others."""
    staying = [
        each for each in image.brokers.values() if not each.is_shutting_down and each.node_id != node_id
    ]
    return any(
        each.node_id in partition.isr or each.node_id in partition.elr
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader == node_id
        for each in staying
        if (topic.topic_id, index) not in each.offline
    )


def _first(
    replicas: Iterable[NodeId], among: Iterable[NodeId], is_fit: Callable[[NodeId], bool]
) -> NodeId | None:
    """In the order of the replicas."""
    members = frozenset(among)
    return next((node_id for node_id in replicas if node_id in members and is_fit(node_id)), None)
