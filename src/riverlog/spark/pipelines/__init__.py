"""Running Spark Declarative Pipelines projects: checked before they run, kept running, and looked at.

A project is Spark's own: a `spark-pipeline.yml` and definitions under `pyspark.pipelines`. Nothing here adds
a word to that language, and `spark-pipelines run` runs the same project. What is added: a runner that keeps
the streaming flows alive instead of ending when they have caught up, on the checkpoints that Spark's own
engine uses; findings with file and line before anything runs; and a look at the positions without Spark.

Not here: the command line, which is `riverlog.cli.commands.pipeline`.
"""
