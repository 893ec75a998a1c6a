/* The sockets of this process and what is counted on them. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "deliveries.h"
#include "histogram.h"
#include "settings.h"

enum { CLOSED, QUEUED, OPENING, READY, WAITING, FAILED, STATES };

/* What is left of a read that ended within a frame. */
typedef struct {
  uint32_t size;
  uint8_t bytes[];
} Rest;

/* 40 bytes, and nothing else while a socket is quiet. */
typedef struct {
  Rest *rest;
  int64_t at_us; /* Of the connect; while it waits, when it is to come back. */
  int32_t fd;
  uint32_t retry_ms;
  uint16_t status;     /* Of the answer to the upgrade; 0: none yet. */
  uint16_t close_code; /* 1006: none was given. */
  uint16_t answered;   /* Topics that were answered since the connect. */
  uint8_t state;
  uint8_t was_ready : 1, has_asked : 1;
} Socket;

#define CODES_MAX 32
#define FAULTS_MAX 10
#define FAULT_CHARS_MAX 200

typedef struct {
  Settings settings;
  Socket *sockets;
  Deliveries deliveries;
  Histogram latencies, handshakes;
  int epoll;
  /* Sockets that are to be opened, in a ring: each is in it at most once. */
  uint32_t *queue, queue_from, queue_count;
  uint32_t in_state[STATES];
  uint64_t messages, messages_at_begin, reads, directs, foreign, refused, gaps, not_recovered, resyncs;
  struct {
    uint16_t code;
    uint64_t count;
  } closed[CODES_MAX];
  char faults[FAULTS_MAX][FAULT_CHARS_MAX];
  int fault_count;
  /* Of the ramp. */
  double per_ms, allowance, allowance_max;
  uint32_t at_once;
  bool retries;
  int64_t paced_us;
} Herd;

/* µs of the clock that bench/fleet/marker.ts writes into messages. */
static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

__attribute__((format(printf, 2, 3))) static void fault(Herd *herd, const char *format, ...) {
  if (herd->fault_count == FAULTS_MAX) return;
  va_list args;
  va_start(args, format);
  char *text = herd->faults[herd->fault_count++];
  vsnprintf(text, FAULT_CHARS_MAX, format, args);
  va_end(args);
  /* It goes into JSON as it is. */
  for (; *text != '\0'; text++)
    if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ') *text = '\'';
}

static void enter(Herd *herd, Socket *socket, uint8_t state) {
  herd->in_state[socket->state]--;
  herd->in_state[state]++;
  socket->state = state;
}

static uint32_t index_of(const Herd *herd, const Socket *socket) { return (uint32_t)(socket - herd->sockets); }

static void enqueue(Herd *herd, Socket *socket) {
  enter(herd, socket, QUEUED);
  herd->queue[(herd->queue_from + herd->queue_count++) % herd->settings.sockets] = index_of(herd, socket);
}

static void count_closed(Herd *herd, uint16_t code) {
  for (int i = 0; i < CODES_MAX; i++) {
    if (herd->closed[i].count > 0 && herd->closed[i].code != code) continue;
    herd->closed[i].code = code;
    herd->closed[i].count++;
    return;
  }
}

/* @param reset true: without a goodbye, and without a port that lingers */
static void close_fd(Socket *socket, bool reset) {
  if (socket->fd < 0) return;
  if (reset) {
    struct linger at_once = {1, 0};
    setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  close(socket->fd);
  socket->fd = -1;
  free(socket->rest);
  socket->rest = NULL;
}

static void fail(Herd *herd, Socket *socket, const char *reason) {
  close_fd(socket, true);
  enter(herd, socket, FAILED);
  fault(herd, "%s", reason);
}

/* @param error of the system; 0: the server has closed it */
static void ended(Herd *herd, Socket *socket, int error) {
  close_fd(socket, false);
  if (socket->state == READY) {
    count_closed(herd, socket->close_code);
    enter(herd, socket, CLOSED);
    return;
  }
  if (socket->status == 503 || socket->status == 429) {
    herd->refused++;
    if (herd->retries) {
      /* The server's hint and up to as much again, so that those who were told the same do not come together. */
      double hint = socket->retry_ms, spread = hint < 1000 ? 1000 : hint;
      socket->at_us = now_us() + (int64_t)((hint + drand48() * spread) * 1000);
      enter(herd, socket, WAITING);
      return;
    }
  }
  char reason[FAULT_CHARS_MAX];
  if (socket->status != 0 && socket->status != 101)
    snprintf(reason, sizeof reason, "the upgrade was answered %d", socket->status);
  else if (error != 0)
    snprintf(reason, sizeof reason, "%s", strerror(error));
  else
    snprintf(reason, sizeof reason, "closed before it was subscribed (%d)", socket->close_code);
  fail(herd, socket, reason);
}

static void became_ready(Herd *herd, Socket *socket) {
  if (socket->state != OPENING) return;
  enter(herd, socket, READY);
  socket->was_ready = 1;
  histogram_record(&herd->handshakes, now_us() - socket->at_us);
}

#endif
