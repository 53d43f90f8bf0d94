"""A broker's settings with what was altered while it ran: the layers, put together from the image."""

from collections.abc import Mapping

from riverlog.metadata.image import ClusterImage
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.ids import NodeId


def broker_layers(image: ClusterImage, static: Mapping[str, str], node_id: NodeId) -> BrokerLayers:
    """`static` is what was set explicitly when the node started."""
    return BrokerLayers(
        static=static,
        dynamic_default=image.broker_config(None),
        dynamic_broker=image.broker_config(node_id),
    )
