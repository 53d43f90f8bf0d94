"""What people type: the `riverlog` command, one module per command or group of commands.

It is not a second client library: everything that talks to a broker goes through confluent-kafka, so each
command works on Apache Kafka too. Only `serve`, `log`, `config` and `metadata` touch Riverlog's own layers.

Invariants: data goes to stdout and everything else to stderr; an error is one line and a remedy, never a
traceback (unless RIVERLOG_DEBUG is set); the exit codes are those of `failures.ExitCode`; a module imports
rich and confluent_kafka inside the functions that need them, so that `serve` and `--help` start at once.
"""
