/* The load: one program, one measurement each time it runs, one JSON object on stdout.
 *
 *   load MODE name=value ... [set:librdkafka.property=value ...]
 *
 * It measures its own side only (times, counts, its processor time); the harness reads the broker's. Whatever
 * goes wrong ends it with status 1 and a line on stderr: a figure is never made of fewer messages than asked.
 */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double own_cpu_s(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

void wait_until(double when_s) {
  struct timespec when;
  when.tv_sec = (time_t)when_s;
  when.tv_nsec = (long)((when_s - (double)when.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
    ;
}

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("load: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  fflush(stderr);
  _Exit(1);
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double percentile(const double *sorted, long count, double share) {
  long index = (long)(share * (double)count);
  return sorted[index < count ? index : count - 1];
}

void print_latencies(double *latencies, long count) {
  if (count == 0) fail("no latency was measured");
  qsort(latencies, (size_t)count, sizeof *latencies, compare);
  printf("\"p50_ms\": %.6f, \"p99_ms\": %.6f, \"p999_ms\": %.6f, \"max_ms\": %.6f",
         percentile(latencies, count, 0.5) * 1e3, percentile(latencies, count, 0.99) * 1e3,
         percentile(latencies, count, 0.999) * 1e3, latencies[count - 1] * 1e3);
}

char *make_text(size_t bytes) {
  static const char *words[] = {"\"order\":",   "\"customer\":", "\"sku\":", "\"cents\":", "\"created_at\":",
                                "\"status\":",  "\"paid\"",      "{",        "}",          "\"eu-central\","};
  char *text = malloc(bytes + 64);
  uint64_t random = 88172645463325252ULL;
  size_t used = 0;
  while (used < bytes) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const char *word = words[random % 10];
    used += (size_t)snprintf(text + used, 64, "%s%llu,", word, (unsigned long long)(random >> 40));
  }
  return text;
}

static void take(settings_t *to, char *argument) {
  char *value = strchr(argument, '=');
  if (value == NULL) fail("%s: expected name=value", argument);
  *value++ = 0;
  if (strncmp(argument, "set:", 4) == 0) {
    if (to->set_count == 64) fail("more properties than the driver has room for");
    to->set_name[to->set_count] = argument + 4;
    to->set_value[to->set_count++] = value;
  } else if (strcmp(argument, "brokers") == 0) to->brokers = value;
  else if (strcmp(argument, "topic") == 0) to->topic = value;
  else if (strcmp(argument, "group") == 0) to->group = value;
  else if (strcmp(argument, "frame") == 0) to->frame = value;
  else if (strcmp(argument, "until") == 0) to->until = value;
  else if (strcmp(argument, "partitions") == 0) to->partitions = atoi(value);
  else if (strcmp(argument, "size") == 0) to->size = atoi(value);
  else if (strcmp(argument, "threads") == 0) to->threads = atoi(value);
  else if (strcmp(argument, "connections") == 0) to->connections = atoi(value);
  else if (strcmp(argument, "window") == 0) to->window = atoi(value);
  else if (strcmp(argument, "batch") == 0) to->batch = atoi(value);
  else if (strcmp(argument, "count") == 0) to->count = atol(value);
  else if (strcmp(argument, "rate") == 0) to->rate = atof(value);
  else if (strcmp(argument, "seconds") == 0) to->seconds = atof(value);
  else fail("unknown setting %s", argument);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(const settings_t *);
  } modes[] = {{"produce", run_produce},         {"consume", run_consume},
               {"paced", run_paced},             {"sync", run_sync},
               {"end-to-end", run_end_to_end},   {"transactions", run_transactions},
               {"join", run_join},               {"requests", run_requests},
               {"replay", run_replay}};
  settings_t settings = {.topic = "", .group = "", .partitions = 1, .size = 100, .threads = 1,
                         .connections = 1, .window = 1, .batch = 100, .count = 1000, .rate = 1000, .seconds = 1};
  if (argc < 2) fail("which mode? See the head of main.c");
  for (int i = 2; i < argc; i++) take(&settings, argv[i]);
  if (settings.brokers == NULL) fail("brokers=HOST:PORT is missing");
  prctl(PR_SET_TIMERSLACK, 1000UL); /* A paced sender must wake when it meant to. */
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run(&settings);
  fail("unknown mode %s", argv[1]);
}
