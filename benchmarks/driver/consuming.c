/* consume: all that a topic holds, by one consumer or by one in each of several groups. end-to-end: what is
 * produced at a rate, consumed in the same process. join: how long a group takes to form. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients.h"

enum { AT_ONCE = 4096, WAIT_S = 60 };

typedef struct {
  const settings_t *settings;
  int number;
  rd_kafka_t *client;
  pthread_barrier_t *ready;
  double begun_s, ended_s; /* From the first messages, which are not counted, to the last. */
  int64_t bytes, all_bytes;
  long messages;
  int is_assigned;
} reader_t;

/* The assignment is put to use once every reader has its own, so that all begin together. */
static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t *partitions,
                         void *opaque) {
  reader_t *reader = opaque;
  if (event != ERR__ASSIGN_PARTITIONS) {
    rd_kafka_assign(client, NULL);
    return;
  }
  if (!reader->is_assigned && reader->ready != NULL) pthread_barrier_wait(reader->ready);
  reader->is_assigned = 1;
  must(rd_kafka_assign(client, partitions), "assign");
}

static rd_kafka_t *new_consumer(reader_t *reader, const char *group) {
  rd_kafka_conf_t *conf = new_conf(reader->settings);
  set_property(conf, "group.id", group);
  rd_kafka_conf_set_opaque(conf, reader);
  rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
  rd_kafka_t *client = new_client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_poll_set_consumer(client);
  return client;
}

static void read_all(reader_t *reader) {
  rd_kafka_message_t **messages = calloc(AT_ONCE, sizeof *messages);
  rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(reader->client);
  double deadline_s = now_s() + WAIT_S;
  for (long left = reader->settings->count; left > 0;) {
    ssize_t count = rd_kafka_consume_batch_queue(queue, 200, messages, AT_ONCE);
    int is_first = reader->begun_s == 0;
    if (count > 0 && is_first) reader->begun_s = now_s();
    for (ssize_t i = 0; i < count; i++) {
      must(messages[i]->err, "a message could not be read");
      if (!is_first) reader->bytes += (int64_t)messages[i]->len, reader->messages++;
      reader->all_bytes += (int64_t)messages[i]->len;
      left--;
      rd_kafka_message_destroy(messages[i]);
    }
    if (now_s() > deadline_s) fail("%ld messages did not come", left);
  }
  reader->ended_s = now_s();
  rd_kafka_queue_destroy(queue);
  free(messages);
}

static void *read_in_group(void *argument) {
  reader_t *reader = argument;
  rd_kafka_topic_partition_list_t *topics = subscription(reader->settings);
  must(rd_kafka_subscribe(reader->client, topics), "subscribe");
  rd_kafka_topic_partition_list_destroy(topics);
  read_all(reader);
  return NULL;
}

static void make_readers(const settings_t *settings, reader_t *readers, pthread_barrier_t *ready, int is_one_group) {
  for (int i = 0; i < settings->threads; i++) {
    char group[256];
    snprintf(group, sizeof group, "%s-%d", settings->group, is_one_group ? 0 : i);
    readers[i] = (reader_t){.settings = settings, .number = i, .ready = ready};
    readers[i].client = new_consumer(&readers[i], group);
  }
}

/* Connecting and finding the leaders takes as long as the client's own timers want, and is left out. */
static void print_consumed(const reader_t *readers, int count, double cpu_s) {
  double begun_s = readers[0].begun_s, ended_s = readers[0].ended_s;
  int64_t bytes = 0, all_bytes = 0;
  long messages = 0;
  for (int i = 0; i < count; i++) {
    if (readers[i].begun_s < begun_s) begun_s = readers[i].begun_s;
    if (readers[i].ended_s > ended_s) ended_s = readers[i].ended_s;
    bytes += readers[i].bytes, all_bytes += readers[i].all_bytes, messages += readers[i].messages;
  }
  printf("{\"messages\": %ld, \"bytes\": %lld, \"all_bytes\": %lld, \"seconds\": %.6f, \"cpu_s\": %.6f}\n", messages,
         (long long)bytes, (long long)all_bytes, ended_s - begun_s, cpu_s);
}

int run_consume(const settings_t *settings) {
  int count = settings->threads;
  reader_t *readers = calloc((size_t)count, sizeof *readers);
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  if (settings->group[0] == 0) { /* No group: its partitions are given to it. */
    reader_t reader = {.settings = settings};
    reader.client = new_consumer(&reader, "none");
    rd_kafka_topic_partition_list_t *partitions = all_partitions(settings, OFFSET_BEGINNING);
    must(rd_kafka_assign(reader.client, partitions), "assign");
    read_all(&reader);
    print_consumed(&reader, 1, own_cpu_s());
    return 0;
  }
  pthread_barrier_t ready;
  pthread_barrier_init(&ready, NULL, (unsigned)count);
  make_readers(settings, readers, &ready, 0);
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, read_in_group, &readers[i]);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  print_consumed(readers, count, own_cpu_s());
  for (int i = 0; i < count; i++) rd_kafka_consumer_close(readers[i].client);
  return 0;
}

/* From subscribing to the assignment, all members of one group; with nothing but polling between. */
int run_join(const settings_t *settings) {
  int count = settings->threads, assigned = 0;
  reader_t *readers = calloc((size_t)count, sizeof *readers);
  make_readers(settings, readers, NULL, 1);
  rd_kafka_topic_partition_list_t *topics = subscription(settings);
  double started_s = now_s(), ended_s;
  for (int i = 0; i < count; i++) must(rd_kafka_subscribe(readers[i].client, topics), "subscribe");
  while (assigned < count) {
    if (now_s() > started_s + WAIT_S) fail("%d of %d members were assigned partitions", assigned, count);
    assigned = 0;
    for (int i = 0; i < count; i++) {
      rd_kafka_message_t *message = rd_kafka_consumer_poll(readers[i].client, 1);
      if (message != NULL) rd_kafka_message_destroy(message);
      assigned += readers[i].is_assigned;
    }
  }
  ended_s = now_s();
  printf("{\"members\": %d, \"seconds\": %.6f}\n", count, ended_s - started_s);
  for (int i = 0; i < count; i++) rd_kafka_consumer_close(readers[i].client);
  return 0;
}

typedef struct {
  rd_kafka_t *client;
  double *latency_s;
  long count;
  atomic_long received;
  atomic_int is_warm;
} listener_t;

typedef struct {
  uint64_t mark; /* Sets our messages apart from what the topic held before. */
  double due_s;
  long number;
} stamp_t;

static const uint64_t MARK = 0x72697665726c6f67;

static void *listen_to_all(void *argument) {
  listener_t *listener = argument;
  while (atomic_load(&listener->received) < listener->count) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(listener->client, 100);
    if (message == NULL) continue;
    must(message->err, "a message could not be read");
    stamp_t stamp = {0};
    if (message->len >= sizeof stamp) memcpy(&stamp, message->payload, sizeof stamp);
    rd_kafka_message_destroy(message);
    if (stamp.mark != MARK) continue;
    if (stamp.number < 0) atomic_store(&listener->is_warm, 1);
    else {
      listener->latency_s[stamp.number] = now_s() - stamp.due_s;
      atomic_fetch_add(&listener->received, 1);
    }
  }
  return NULL;
}

static void send_stamped(rd_kafka_topic_t *topic, const settings_t *settings, char *payload, long number,
                         double due_s) {
  enum { COPY = 2 };
  stamp_t stamp = {MARK, due_s, number};
  memcpy(payload, &stamp, sizeof stamp);
  int32_t partition = (int32_t)((number < 0 ? -number : number) % settings->partitions);
  if (rd_kafka_produce(topic, partition, COPY, payload, (size_t)settings->size, NULL, 0, NULL) != 0)
    must(rd_kafka_last_error(), "produce");
}

int run_end_to_end(const settings_t *settings) {
  long count = (long)(settings->rate * settings->seconds);
  listener_t listener = {.count = count, .latency_s = calloc((size_t)count, sizeof(double))};
  reader_t reader = {.settings = settings};
  listener.client = new_consumer(&reader, "none");
  must(rd_kafka_assign(listener.client, all_partitions(settings, OFFSET_BEGINNING)), "assign");
  rd_kafka_t *producer = new_client(RD_KAFKA_PRODUCER, new_conf(settings));
  rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, settings->topic, NULL);
  char *payload = make_text((size_t)settings->size);
  pthread_t thread;
  pthread_create(&thread, NULL, listen_to_all, &listener);
  for (long i = 1; i <= 200 || !atomic_load(&listener.is_warm); i++) {
    send_stamped(topic, settings, payload, -i, 0);
    rd_kafka_poll(producer, 0);
    wait_until(now_s() + 0.001);
    if (i > 30000) fail("nothing that was produced came back");
  }
  double started_s = now_s() + 0.01;
  for (long i = 0; i < count; i++) {
    double due_s = started_s + (double)i / settings->rate;
    wait_until(due_s);
    send_stamped(topic, settings, payload, i, due_s);
    rd_kafka_poll(producer, 0);
  }
  must(rd_kafka_flush(producer, WAIT_S * 1000), "flush");
  double deadline_s = now_s() + WAIT_S;
  while (atomic_load(&listener.received) < count) {
    if (now_s() > deadline_s) fail("%ld messages did not come", count - atomic_load(&listener.received));
    wait_until(now_s() + 0.001);
  }
  pthread_join(thread, NULL);
  printf("{\"messages\": %ld, \"seconds\": %.6f, ", count, now_s() - started_s);
  print_latencies(listener.latency_s, count);
  printf("}\n");
  return 0;
}
