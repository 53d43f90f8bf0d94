"""What differs with several brokers: the same questions to three of Apache Kafka's and to three of ours."""
