"""What a topic's config demands of a batch."""

from riverlog.model.config.slices import CompressionType, LogConfig
from riverlog.records import validate as validation
from riverlog.records.compression import Codec


def batch_rules(config: LogConfig) -> validation.BatchRules:
    return validation.BatchRules(
        max_batch_bytes=config.max_message_bytes,
        timestamp_type=config.timestamp_type,
        timestamp_before_max_ms=config.timestamp_before_max_ms,
        timestamp_after_max_ms=config.timestamp_after_max_ms,
        compacted=config.is_compacted,
        codec=_CODECS[config.compression_type],
        compression_level=config.compression_level,
        validate_records=config.validate_records,
        decompressed_limit_bytes=config.decompressed_bytes_max,
    )


_CODECS: dict[CompressionType, Codec | None] = {
    CompressionType.PRODUCER: None,
    CompressionType.UNCOMPRESSED: Codec.NONE,
    CompressionType.GZIP: Codec.GZIP,
    CompressionType.SNAPPY: Codec.SNAPPY,
    CompressionType.LZ4: Codec.LZ4,
    CompressionType.ZSTD: Codec.ZSTD,
}
