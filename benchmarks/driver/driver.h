/* What the modes of the driver share: their settings, the clock, and how results are written. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  const char *brokers, *topic, *group, *frame, *until;
  int partitions, size, threads, connections, window, batch;
  long count;
  double rate, seconds;
  int set_count;
  const char *set_name[64], *set_value[64]; /* Properties of librdkafka, as given. */
} settings_t;

double now_s(void);
double own_cpu_s(void);
void wait_until(double when_s);
_Noreturn void fail(const char *format, ...);

/* Latencies in seconds; prints `"p50_ms": ..., ...` without a comma at the end. */
void print_latencies(double *latencies, long count);

/* Text that compresses about as well as lines of JSON do: a third of its size or so with lz4. */
char *make_text(size_t bytes);

int run_produce(const settings_t *);
int run_consume(const settings_t *);
int run_paced(const settings_t *);
int run_sync(const settings_t *);
int run_end_to_end(const settings_t *);
int run_transactions(const settings_t *);
int run_join(const settings_t *);
int run_requests(const settings_t *);
int run_replay(const settings_t *);

#endif
