"""Fetch requests and responses by hand: the same messages and bytes as the tables give, sooner."""

from riverlog.wire.hot_fetch_request import decode_fetch, decode_fetch_request
from riverlog.wire.hot_fetch_response import encode_fetch_response
from riverlog.wire.hot_fetch_single import SingleFetch, encode_single_fetch

__all__ = [
    "SingleFetch",
    "decode_fetch",
    "decode_fetch_request",
    "encode_fetch_response",
    "encode_single_fetch",
]
