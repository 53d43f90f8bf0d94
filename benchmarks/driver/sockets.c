/* Frames made beforehand, over plain sockets: the least that a client can cost.
 *
 * requests: many connections, one unanswered request on each. replay: one connection, the same frames over and
 * over, several unanswered. The frames are the whole of a file, each with its length in front. Replies are counted, and
 * one that is not as long as the first of its kind ends the run: an error reply differs in length or is found
 * by the harness, which sends the frame once by itself and reads the answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

typedef struct {
  char *bytes;
  size_t size;
} frame_t;

typedef struct {
  int fd;
  size_t got;
  double sent_s;
} connection_t;

static frame_t read_frame(const char *path) {
  struct stat status;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &status) != 0) fail("%s: %s", path, strerror(errno));
  frame_t frame = {malloc((size_t)status.st_size), (size_t)status.st_size};
  for (size_t got = 0; got < frame.size;) {
    ssize_t count = read(fd, frame.bytes + got, frame.size - got);
    if (count <= 0) fail("%s could not be read", path);
    got += (size_t)count;
  }
  close(fd);
  return frame;
}

static int open_connection(const char *broker) {
  char host[256];
  const char *colon = strrchr(broker, ':');
  if (colon == NULL || (size_t)(colon - broker) >= sizeof host) fail("%s is not HOST:PORT", broker);
  snprintf(host, sizeof host, "%.*s", (int)(colon - broker), broker);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is not an IPv4 address", host);
  int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  if (fd < 0) fail("socket: %s", strerror(errno));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect: %s", strerror(errno));
  return fd;
}

static void send_frame(int fd, const frame_t *frame) {
  for (size_t sent = 0; sent < frame->size;) {
    ssize_t count = send(fd, frame->bytes + sent, frame->size - sent, MSG_NOSIGNAL);
    if (count < 0) fail("send: %s", strerror(errno));
    sent += (size_t)count;
  }
}

/* A reply of known length; the four bytes of its own length included. */
static size_t first_reply(int fd, char *buffer, size_t room) {
  uint32_t size;
  if (recv(fd, &size, 4, MSG_WAITALL) != 4) fail("the server closed the connection");
  size_t length = ntohl(size);
  if (length > room) fail("a reply of %zu bytes is longer than expected", length);
  if (recv(fd, buffer, length, MSG_WAITALL) != (ssize_t)length) fail("the server closed the connection");
  return length + 4;
}

int run_requests(const settings_t *settings) {
  frame_t frame = read_frame(settings->frame);
  connection_t *connections = calloc((size_t)settings->connections, sizeof *connections);
  long room = 1 << 22, count = 0;
  double *latency_s = calloc((size_t)room, sizeof(double));
  char buffer[65536];
  int poll = epoll_create1(0);
  size_t reply = 0;
  for (int i = 0; i < settings->connections; i++) {
    connections[i].fd = open_connection(settings->brokers);
    send_frame(connections[i].fd, &frame);
    reply = first_reply(connections[i].fd, buffer, sizeof buffer);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
    epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].fd, &event);
  }
  double cpu_s = own_cpu_s(), started_s = now_s(), until_s = started_s + settings->seconds, at_s = started_s;
  for (int i = 0; i < settings->connections; i++) {
    connections[i].sent_s = now_s();
    send_frame(connections[i].fd, &frame);
  }
  for (long open = settings->connections; open > 0;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poll, events, 256, 10000);
    if (ready <= 0) fail("no reply for ten seconds");
    for (int i = 0; i < ready; i++) {
      connection_t *connection = events[i].data.ptr;
      ssize_t got = recv(connection->fd, buffer, reply - connection->got, 0);
      if (got <= 0) fail("the server closed a connection");
      connection->got += (size_t)got;
      if (connection->got < reply) continue;
      connection->got = 0;
      at_s = now_s();
      if (count < room) latency_s[count++] = at_s - connection->sent_s;
      if (at_s > until_s) {
        open--;
        continue;
      }
      connection->sent_s = at_s;
      send_frame(connection->fd, &frame);
    }
  }
  printf("{\"requests\": %ld, \"seconds\": %.6f, \"cpu_s\": %.6f, ", count, at_s - started_s, own_cpu_s() - cpu_s);
  print_latencies(latency_s, count);
  printf("}\n");
  return 0;
}

/* Both ways at once: replies are read while a large frame is still being sent. */
int run_replay(const settings_t *settings) {
  frame_t frame = read_frame(settings->frame);
  char *buffer = malloc(1 << 22);
  int fd = open_connection(settings->brokers);
  double cpu_s = own_cpu_s(), started_s = now_s();
  int64_t received = 0;
  long sent = 0;
  for (long answered = 0; answered < settings->count; answered++) {
    for (; sent < settings->count && sent - answered < settings->window; sent++) send_frame(fd, &frame);
    received += (int64_t)first_reply(fd, buffer, 1 << 22);
  }
  printf("{\"requests\": %ld, \"bytes\": %lld, \"received\": %lld, \"seconds\": %.6f, \"cpu_s\": %.6f}\n",
         settings->count, (long long)settings->count * (long long)frame.size, (long long)received,
         now_s() - started_s, own_cpu_s() - cpu_s);
  return 0;
}
