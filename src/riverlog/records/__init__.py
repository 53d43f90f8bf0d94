"""Record batches: views of their headers, compression, single records, building and validation.

Pure: no I/O, no clock, no randomness. The data path works on whole batches (`batch`, `validate`); single
records are decoded only where they are needed (`record`, `record_checks`). Legacy formats (magic 0 and
1) are not supported: Apache Kafka 4 takes none of them either.
"""
