"""The slices of the settings that other layers are given: small, frozen, typed objects."""

from riverlog.model.config.listeners import Listener, SecurityProtocol
from riverlog.model.config.log_config import (
    DAY_MS,
    LONG_MAX,
    CleanupPolicy,
    CompressionType,
    LogConfig,
    TimestampType,
)
from riverlog.model.config.server_config import INT_MAX, ServerConfig

__all__ = [
    "DAY_MS",
    "INT_MAX",
    "LONG_MAX",
    "CleanupPolicy",
    "CompressionType",
    "Listener",
    "LogConfig",
    "SecurityProtocol",
    "ServerConfig",
    "TimestampType",
]
