"""What `zookeeper.connect` needs, looked for before anything is written."""

from importlib.util import find_spec

from riverlog.metadata.stores.zookeeper_servers import parse_connect
from riverlog.model.errors import ConfigError

MISSING = (
    "zookeeper.connect needs the package kazoo, which is not installed: pip install 'riverlog[zookeeper]'."
)


def check_zookeeper(connect: str) -> None:
    """Raises `ConfigError` where the package is missing, or for what is no address."""
    parse_connect(connect)
    if find_spec("kazoo") is None:
        raise ConfigError(MISSING)
