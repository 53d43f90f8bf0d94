"""The tables of keys, by theme. Facts are Apache Kafka 4.3.1's; the sentences are ours."""
