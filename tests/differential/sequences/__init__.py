"""Every sequence there is, API by API. A new module is added to ``_MODULES``; nothing else needs to know."""

from __future__ import annotations

from tests.differential.sequences import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    every_api,
    fetch,
    fetch_sessions,
    framing,
    groups,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    offsets,
    produce,
    produce_batches,
    produce_idempotent,
    transaction_offsets,
    transactions,
)
from tests.differential.steps import Script

_MODULES = (
    api_versions,
    framing,
    every_api,
    metadata,
    produce,
    produce_batches,
    produce_idempotent,
    fetch,
    fetch_sessions,
    list_offsets,
    offset_for_leader_epoch,
    create_topics,
    delete_topics,
    delete_records,
    create_partitions,
    describe_configs,
    alter_configs,
    incremental_alter_configs,
    describe_cluster,
    describe_topic_partitions,
    describe_log_dirs,
    init_producer_id,
    transactions,
    transaction_offsets,
    offsets,
    groups,
)

SCRIPTS: list[Script] = [script for module in _MODULES for script in module.scripts()]
