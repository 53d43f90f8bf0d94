"""What passes between a connection and a handler: who asks, and the outcomes that a handler may have.

Not here: sockets (`broker.net`), routes (`broker.dispatch`), what any API means.
"""
