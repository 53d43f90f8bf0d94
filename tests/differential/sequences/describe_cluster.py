"""DescribeCluster: who is there."""

from __future__ import annotations

from tests.differential.sequences.common import VERSIONS
from tests.differential.steps import Call, Script, Step


def scripts() -> list[Script]:
    return [Script("DescribeCluster", f"version {v}", _version(v)) for v in VERSIONS["DescribeCluster"]]


def _version(version: int) -> list[Step]:
    steps: list[Step] = [
        Call("DescribeCluster", version, {"endpoint_type": 1}),
        Call("DescribeCluster", version, {"endpoint_type": 1, "include_cluster_authorized_operations": True}),
    ]
    if version >= 1:
        steps += [Call("DescribeCluster", version, {"endpoint_type": kind}) for kind in (0, 2, 3, -1)]
    if version >= 2:
        steps.append(Call("DescribeCluster", version, {"endpoint_type": 1, "include_fenced_brokers": True}))
    return steps
