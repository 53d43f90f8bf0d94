"""The one list of what this broker serves. What is not in it is neither answered nor advertised."""

from collections.abc import Callable, Mapping, Sequence

from riverlog.broker.handlers.api_versions import ApiVersionsHandler, FeaturesInForce
from riverlog.broker.handlers.produce import SERVED_VERSION_MIN, ProduceHandler
from riverlog.broker.route import Handler, Route, route
from riverlog.wire.apis import ApiKey
from riverlog.wire.hot_fetch import decode_fetch, encode_fetch_response
from riverlog.wire.hot_list_offsets import decode_list_offsets_request, encode_list_offsets_response
from riverlog.wire.hot_produce import decode_produce, encode_produce_response


def routes_of(
    *,
    produce: ProduceHandler,
    fetch: Handler,
    list_offsets: Handler,
    offset_for_leader_epoch: Handler,
    init_producer_id: Handler,
    admin: Mapping[ApiKey, Handler],
    features: Callable[[], FeaturesInForce],
) -> Mapping[int, Route]:
    """By API key. The data path is read and written by hand, the rest by the message tables."""
    routes: Sequence[Route] = [
        route(
            ApiKey.PRODUCE,
            produce,
            decode=decode_produce,
            encode=lambda *reply: [encode_produce_response(*reply)],
            served_version_min=SERVED_VERSION_MIN,
            may_be_overtaken=True,
            repeat=produce.repeated,
        ),
        route(
            ApiKey.FETCH,
            fetch,
            decode=decode_fetch,
            encode=encode_fetch_response,
            may_be_overtaken=True,
        ),
        route(
            ApiKey.LIST_OFFSETS,
            list_offsets,
            decode=decode_list_offsets_request,
            encode=lambda *reply: [encode_list_offsets_response(*reply)],
        ),
        route(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch),
        route(ApiKey.INIT_PRODUCER_ID, init_producer_id),
        *(route(key, handler) for key, handler in admin.items()),
    ]
    api_versions = route(ApiKey.API_VERSIONS, ApiVersionsHandler((each.api for each in routes), features))
    return {int(each.api.key): each for each in (*routes, api_versions)}
