"""The controller of a node, with the rules that its settings amount to. Not here: who holds the office."""

from riverlog.controller.controller import Controller
from riverlog.controller.decisions.leadership import ElectionRules
from riverlog.controller.decisions.topics import TopicRules
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.metadata_store import MetadataStore
from riverlog.node.surroundings import Surroundings


def controller_of(given: Surroundings, store: MetadataStore, follower: MetadataFollower) -> Controller:
    def topic_rules() -> TopicRules:
        return TopicRules(
            given.config.num_partitions,
            given.config.default_replication_factor,
            lambda overrides: given.live_config.topic_problem(follower.image, overrides),
        )

    def election_rules(image: ClusterImage, topic: str) -> ElectionRules:
        config = given.live_config.log_config(image, topic)
        return ElectionRules(config.min_insync_replicas, config.unclean_leader_election)

    return Controller(
        store,
        follower,
        given.config.node_id,
        rules=topic_rules,
        new_id=given.new_id,
        random=given.random,
        wall_ms=given.clock.wall_ms,
        election_rules=election_rules,
        metrics=given.metrics,
        is_alone=given.is_alone,
    )
