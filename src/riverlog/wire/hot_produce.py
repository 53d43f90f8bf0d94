"""Produce requests and responses by hand: the same messages and bytes as the tables give, sooner."""

from riverlog.wire.hot_produce_request import SingleBatch, decode_produce, decode_produce_request
from riverlog.wire.hot_produce_response import encode_produce_response, encode_single

__all__ = [
    "SingleBatch",
    "decode_produce",
    "decode_produce_request",
    "encode_produce_response",
    "encode_single",
]
