/* The part of librdkafka's documented C interface that the driver calls.
 *
 * The shared object inside confluent-kafka's wheel comes without its header, so the few types and functions are
 * declared here. Types that are only passed on stay opaque; the layout of a message is part of the interface.
 */
#ifndef RDKAFKA_CALLS_H
#define RDKAFKA_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_error_s rd_kafka_error_t;
typedef struct rd_kafka_topic_partition_list_s rd_kafka_topic_partition_list_t;
typedef int rd_kafka_resp_err_t; /* An enum of the library; negative values are its own. */

typedef struct rd_kafka_message_s {
  rd_kafka_resp_err_t err;
  rd_kafka_topic_t *rkt;
  int32_t partition;
  void *payload;
  size_t len;
  void *key;
  size_t key_len;
  int64_t offset;
  void *_private; /* What was handed to rd_kafka_produce as `opaque`. */
} rd_kafka_message_t;

enum { RD_KAFKA_PRODUCER = 0, RD_KAFKA_CONSUMER = 1 };
enum { RD_KAFKA_CONF_OK = 0 };
enum {
  ERR__QUEUE_FULL = -184,
  ERR__PARTITION_EOF = -191,
  ERR__ASSIGN_PARTITIONS = -175,
  ERR_NONE = 0,
};
#define OFFSET_BEGINNING ((int64_t)-2)
#define OFFSET_END ((int64_t)-1)

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *name, const char *value, char *why, size_t why_size);
void rd_kafka_conf_set_opaque(rd_kafka_conf_t *, void *opaque);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *,
                                 void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *opaque));
void rd_kafka_conf_set_rebalance_cb(rd_kafka_conf_t *,
                                    void (*)(rd_kafka_t *, rd_kafka_resp_err_t,
                                             rd_kafka_topic_partition_list_t *, void *opaque));

rd_kafka_t *rd_kafka_new(int type, rd_kafka_conf_t *, char *why, size_t why_size);
void rd_kafka_destroy(rd_kafka_t *);
int rd_kafka_poll(rd_kafka_t *, int timeout_ms);
rd_kafka_resp_err_t rd_kafka_flush(rd_kafka_t *, int timeout_ms);
int rd_kafka_outq_len(rd_kafka_t *);
const char *rd_kafka_err2str(rd_kafka_resp_err_t);
const char *rd_kafka_version_str(void);
rd_kafka_resp_err_t rd_kafka_last_error(void);
rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t *, const char *topic, int32_t partition,
                                                     int64_t *low, int64_t *high, int timeout_ms);

rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *name, rd_kafka_topic_conf_t *);
void rd_kafka_topic_destroy(rd_kafka_topic_t *);
int rd_kafka_produce(rd_kafka_topic_t *, int32_t partition, int flags, void *payload, size_t len,
                     const void *key, size_t key_len, void *opaque);

rd_kafka_topic_partition_list_t *rd_kafka_topic_partition_list_new(int size);
void rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *);
void *rd_kafka_topic_partition_list_add(rd_kafka_topic_partition_list_t *, const char *topic, int32_t partition);
rd_kafka_resp_err_t rd_kafka_topic_partition_list_set_offset(rd_kafka_topic_partition_list_t *, const char *topic,
                                                             int32_t partition, int64_t offset);
rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *, const rd_kafka_topic_partition_list_t *);
rd_kafka_resp_err_t rd_kafka_subscribe(rd_kafka_t *, const rd_kafka_topic_partition_list_t *);
rd_kafka_resp_err_t rd_kafka_poll_set_consumer(rd_kafka_t *);
rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *);
rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *);
void rd_kafka_queue_destroy(rd_kafka_queue_t *);
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *, int timeout_ms, rd_kafka_message_t **, size_t count);
rd_kafka_message_t *rd_kafka_consumer_poll(rd_kafka_t *, int timeout_ms);
void rd_kafka_message_destroy(rd_kafka_message_t *);

rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *, int timeout_ms);
rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *);
rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *, int timeout_ms);
const char *rd_kafka_error_string(const rd_kafka_error_t *);
void rd_kafka_error_destroy(rd_kafka_error_t *);

#endif
