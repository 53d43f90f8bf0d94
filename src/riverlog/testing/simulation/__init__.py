"""Whole brokers in a simulator: any fault, any order, repeatable from a number.

**What is simulated.** Everything behind the ports of a `Node`, which is the one that `riverlog serve` starts:
the event loop with its time and its threads, the network and the clocks (`machine`), the disk
(`riverlog.testing.simulated_disk`), the store (`riverlog.testing.simulated_store`), chance and ids
(`nodes`). Clients (`clients`) speak the protocol over the simulated network, each in a process of its own.
**What is not:** the embedded store's SQLite file (the simulated store takes its place and keeps everything),
the operating system's sockets and `sendfile`, threads that run at the same time (a piece of work in a thread
runs whole, between two callbacks), and the time that code takes (none).

**Whose a callback is.** A process has lives (`machine.lives.Life`), from a start to an end. The current one
is in a `ContextVar`; asyncio copies the context into every task, timer and callback, so the loop knows of
each handle which life it belongs to. Within a life callbacks keep their order, as asyncio promises; whose
turn it is, when a thread's work is done and when bytes arrive is drawn. kill -9 kills the ports first, then
drops the life's handles and closes its tasks: what their `finally` blocks do cannot be seen by anybody.

**Where chance comes from.** `World.chance(purpose)` is a `Random` of the seed and the purpose, so that one
purpose does not move another. Nothing else draws. Sets of strings are iterated in the order of their hashes,
so a run is repeatable under one `PYTHONHASHSEED`; the command line sets it to 0.

**Who looks.** `checks.observer` looks at each node after each of its callbacks and keeps the ledger
(`checks.ledger`) of everything committed; clients hold what they are told against it. A broken promise is a
`Violation`, with the number of the invariant. Each further check is a module of `checks`: it adds itself to
`NodeObserver.on_look`, `on_recovered`, `on_quiet` or `on_stopped` or to `Ledger.on_commit` and raises
`Violation`; `checks.standard` lists them.

`world.World` puts these together; its docstring shows the beginning.
"""
