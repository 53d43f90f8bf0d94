"""What kcat shows of a cluster."""

import json

from tests.conformance.clients.kcat import metadata
from tests.conformance.conftest import MakeTopic


def test_kcat_lists_brokers_topics_and_partitions(make_topic: MakeTopic, bootstrap: str) -> None:
    topic = make_topic(3)
    listing = json.loads(metadata(bootstrap))
    [broker] = listing["brokers"]
    assert broker["name"] == bootstrap
    assert listing["controllerid"] == broker["id"]
    [described] = [entry for entry in listing["topics"] if entry["topic"] == topic]
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {partition["leader"] for partition in described["partitions"]} == {broker["id"]}
