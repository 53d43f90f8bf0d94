"""The whole of it in one run: a broker, orders, a pipeline on Spark, and a proof that nothing is missing."""
