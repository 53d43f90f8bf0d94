/* produce: as fast as it goes. paced: at a rate, with the latency of each message. sync: one at a time.
 * transactions: one after the other. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients.h"

enum { TEXT_BYTES = 4 * 1024 * 1024, WARM_UP = 64, WAIT_MS = 60000, UNTIL_EVERY = 64 };

typedef struct {
  double *sent_s, *latency_s;
  atomic_long delivered, failed;
  int may_fail; /* What is not delivered is counted, and ends nothing. */
} deliveries_t;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client;
  deliveries_t *deliveries = opaque;
  if (message->err && deliveries->may_fail) atomic_fetch_add(&deliveries->failed, 1);
  else must(message->err, "a message was not delivered");
  long number = (long)(intptr_t)message->_private;
  if (deliveries->latency_s != NULL && number >= 0)
    deliveries->latency_s[number] = now_s() - deliveries->sent_s[number];
  atomic_fetch_add(&deliveries->delivered, 1);
}

static rd_kafka_t *new_producer(const settings_t *settings, deliveries_t *deliveries) {
  rd_kafka_conf_t *conf = new_conf(settings);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_conf_set_opaque(conf, deliveries);
  return new_client(RD_KAFKA_PRODUCER, conf);
}

static char *nth_payload(char *text, long number, int size) {
  size_t places = (size_t)(TEXT_BYTES - size);
  return text + (size_t)number * 7919 % places;
}

static void send_one(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, char *payload, int size,
                     long number) {
  while (rd_kafka_produce(topic, partition, 0, payload, (size_t)size, NULL, 0, (void *)(intptr_t)number) != 0) {
    rd_kafka_resp_err_t err = rd_kafka_last_error();
    if (err != ERR__QUEUE_FULL) must(err, "produce");
    rd_kafka_poll(client, 2);
  }
}

/* Connects, learns the leaders, and lets the broker open its files. */
static void warm_up(const settings_t *settings, rd_kafka_t *client, rd_kafka_topic_t *topic, char *text) {
  for (int i = 0; i < settings->partitions || i < WARM_UP; i++)
    send_one(client, topic, i % settings->partitions, text, settings->size, -1);
  must(rd_kafka_flush(client, WAIT_MS), "warm-up");
}

static int64_t end_offsets(const settings_t *settings, rd_kafka_t *client) {
  int64_t total = 0, low, high;
  for (int partition = 0; partition < settings->partitions; partition++) {
    must(rd_kafka_query_watermark_offsets(client, settings->topic, partition, &low, &high, WAIT_MS), "offsets");
    total += high;
  }
  return total;
}

typedef struct {
  const settings_t *settings;
  rd_kafka_t *client;
  rd_kafka_topic_t *topic;
  char *text;
  long count;
} writer_t;

static void *write_all(void *argument) {
  writer_t *writer = argument;
  const settings_t *settings = writer->settings;
  for (long i = 0; i < writer->count; i++)
    send_one(writer->client, writer->topic, (int32_t)(i % settings->partitions),
             nth_payload(writer->text, i, settings->size), settings->size, -1);
  must(rd_kafka_flush(writer->client, WAIT_MS), "flush");
  return NULL;
}

/* Delivery reports are asked for failures only (set by the harness), because a callback for each message costs
 * the client more than the broker needs for it; what was delivered is checked by the end offsets, which is also
 * how long acks=0 has to wait for the broker. */
int run_produce(const settings_t *settings) {
  deliveries_t deliveries = {0};
  char *text = make_text(TEXT_BYTES);
  int count = settings->threads;
  writer_t *writers = calloc((size_t)count, sizeof *writers);
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  for (int i = 0; i < count; i++) {
    writers[i] = (writer_t){.settings = settings, .text = text};
    writers[i].count = settings->count / count + (i < settings->count % count);
    writers[i].client = new_producer(settings, &deliveries);
    writers[i].topic = rd_kafka_topic_new(writers[i].client, settings->topic, NULL);
    warm_up(settings, writers[i].client, writers[i].topic, text);
  }
  rd_kafka_t *client = writers[0].client;
  int64_t before = end_offsets(settings, client);
  for (int wait = 0; before < settings->partitions && wait < 1000; wait++) before = end_offsets(settings, client);
  double cpu_s = own_cpu_s(), started_s = now_s(), deadline_s = started_s + 120;
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, write_all, &writers[i]);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  double flushed_s = now_s() - started_s;
  while (end_offsets(settings, client) < before + settings->count)
    if (now_s() > deadline_s) fail("the broker has fewer messages than were sent");
  double ended_s = now_s() - started_s;
  printf("{\"messages\": %ld, \"bytes\": %lld, \"seconds\": %.6f, \"flushed_s\": %.6f, \"cpu_s\": %.6f}\n",
         settings->count, (long long)settings->count * settings->size, ended_s, flushed_s, own_cpu_s() - cpu_s);
  return 0;
}

static atomic_int is_over;

static void *poll_until_over(void *client) {
  while (!atomic_load(&is_over)) rd_kafka_poll(client, 10);
  return NULL;
}

/* A message counts from when it was due, so that a sender held up does not hide what it waited for. With
 * `until` it ends when that file is there, and a message that is not delivered is counted as failed. */
int run_paced(const settings_t *settings) {
  long count = (long)(settings->rate * settings->seconds);
  deliveries_t deliveries = {.sent_s = calloc((size_t)count, sizeof(double)),
                             .latency_s = calloc((size_t)count, sizeof(double)),
                             .may_fail = settings->until != NULL};
  char *text = make_text(TEXT_BYTES);
  rd_kafka_t *client = new_producer(settings, &deliveries);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, settings->topic, NULL);
  warm_up(settings, client, topic, text);
  pthread_t poller;
  pthread_create(&poller, NULL, poll_until_over, client);
  long delivered_before = atomic_load(&deliveries.delivered);
  double started_s = now_s() + 0.01;
  for (long i = 0; i < count; i++) {
    double due_s = started_s + (double)i / settings->rate;
    wait_until(due_s);
    if (settings->until != NULL && i % UNTIL_EVERY == UNTIL_EVERY - 1 && access(settings->until, F_OK) == 0) count = i + 1;
    deliveries.sent_s[i] = due_s;
    send_one(client, topic, (int32_t)(i % settings->partitions), nth_payload(text, i, settings->size),
             settings->size, i);
  }
  must(rd_kafka_flush(client, WAIT_MS), "flush");
  double elapsed_s = now_s() - started_s;
  while (atomic_load(&deliveries.delivered) < delivered_before + count) wait_until(now_s() + 0.001);
  atomic_store(&is_over, 1);
  pthread_join(poller, NULL);
  printf("{\"messages\": %ld, \"seconds\": %.6f, \"failed\": %ld, ", count, elapsed_s,
         atomic_load(&deliveries.failed));
  print_latencies(deliveries.latency_s, count);
  printf("}\n");
  return 0;
}

int run_sync(const settings_t *settings) {
  deliveries_t deliveries = {0};
  double *latency_s = calloc((size_t)settings->count, sizeof(double));
  char *text = make_text(TEXT_BYTES);
  rd_kafka_t *client = new_producer(settings, &deliveries);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, settings->topic, NULL);
  warm_up(settings, client, topic, text);
  rd_kafka_poll(client, 0);
  double started_s = now_s();
  for (long i = 0; i < settings->count; i++) {
    long before = atomic_load(&deliveries.delivered);
    double sent_s = now_s();
    send_one(client, topic, (int32_t)(i % settings->partitions), nth_payload(text, i, settings->size),
             settings->size, -1);
    while (atomic_load(&deliveries.delivered) == before) rd_kafka_poll(client, 1000);
    latency_s[i] = now_s() - sent_s;
  }
  double elapsed_s = now_s() - started_s;
  printf("{\"messages\": %ld, \"seconds\": %.6f, ", settings->count, elapsed_s);
  print_latencies(latency_s, settings->count);
  printf("}\n");
  return 0;
}

static void one_transaction(const settings_t *settings, rd_kafka_t *client, rd_kafka_topic_t *topic, char *text) {
  must_not_fail(rd_kafka_begin_transaction(client), "begin");
  for (int i = 0; i < settings->batch; i++)
    send_one(client, topic, i % settings->partitions, nth_payload(text, i, settings->size), settings->size, -1);
  must_not_fail(rd_kafka_commit_transaction(client, WAIT_MS), "commit");
}

int run_transactions(const settings_t *settings) {
  deliveries_t deliveries = {0};
  char *text = make_text(TEXT_BYTES);
  rd_kafka_t *client = new_producer(settings, &deliveries);
  must_not_fail(rd_kafka_init_transactions(client, WAIT_MS), "init");
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, settings->topic, NULL);
  double until_s = now_s() + 0.3; /* To warm up. */
  while (now_s() < until_s) one_transaction(settings, client, topic, text);
  long count = 0;
  double started_s = now_s();
  while (now_s() < started_s + settings->seconds) one_transaction(settings, client, topic, text), count++;
  printf("{\"transactions\": %ld, \"seconds\": %.6f}\n", count, now_s() - started_s);
  return 0;
}
