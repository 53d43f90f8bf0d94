"""What a leader knows of the other replicas of a partition, and whether it leads still.

`follower_states` is how far each has come, `in_sync` who counts, `isr` who should, `led_replicas` all of that
for one partition; `lease`, `confirmation` and `tenure` say whether nobody else can lead by now (I17). Nothing
here knows the partition and its log (`replication.partition`). Not here: what is committed
(`replication.watermark`), and the writing down of an ISR (`replication.isr_keeper`).
"""
