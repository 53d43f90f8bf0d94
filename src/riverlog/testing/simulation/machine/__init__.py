"""What a simulated process runs on: the virtual-time loop, its clocks and threads, the network between hosts
and the ensemble that they share. Disks and stores are `riverlog.testing.simulated_disk` and
`riverlog.testing.simulated_store`.

Nothing here knows of brokers, clients, faults or checks.
"""
