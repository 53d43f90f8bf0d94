"""One module per API. A handler turns a typed request into a typed response, or an awaitable of one."""
