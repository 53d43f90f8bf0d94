/* Making librdkafka's clients, for all modes alike. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "driver.h"
#include "rdkafka_calls.h"

void set_property(rd_kafka_conf_t *, const char *name, const char *value);

/* With the brokers and the `set:` properties of the command line. */
rd_kafka_conf_t *new_conf(const settings_t *);

/* Takes the configuration over. */
rd_kafka_t *new_client(int type, rd_kafka_conf_t *);
void must(rd_kafka_resp_err_t err, const char *what);
void must_not_fail(rd_kafka_error_t *error, const char *what);

/* All partitions of the topic from one offset. */
rd_kafka_topic_partition_list_t *all_partitions(const settings_t *, int64_t offset);
rd_kafka_topic_partition_list_t *subscription(const settings_t *);

#endif
