/* What the server sends, cut into frames and counted, and the few frames that are answered. */
#ifndef FRAMES_H
#define FRAMES_H

#include "sockets.h"

enum { TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* One read, after what was left of the socket's last one. */
#define READ_MAX (64 * 1024)
#define REST_MAX (1024 * 1024)
static uint8_t buffer[REST_MAX + READ_MAX];

/* Masked with zero, which costs nothing: RFC 6455, 5.3 asks for more for the sake of proxies, and there is none. */
static void send_frame(Herd *herd, Socket *socket, uint8_t opcode, const char *payload, size_t size) {
  uint8_t frame[8 + 65535] = {(uint8_t)(0x80 | opcode)};
  if (size > 65535) return fault(herd, "a frame of %zu bytes is not sent", size);
  size_t head = size < 126 ? 6 : 8;
  frame[1] = (uint8_t)(0x80 | (size < 126 ? size : 126));
  if (size >= 126) put_big_endian(frame + 2, size, 2);
  memset(frame + head - 4, 0, 4);
  memcpy(frame + head, payload, size);
  if (send(socket->fd, frame, head + size, MSG_NOSIGNAL) != (ssize_t)(head + size) && errno != EPIPE && errno != ECONNRESET)
    fault(herd, "the server does not take what is sent to it");
}

static uint64_t read_digits(const char **at, const char *end) {
  uint64_t value = 0;
  for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) value = value * 10 + (uint64_t)(**at - '0');
  return value;
}

static bool skip_text(const char **at, const char *end, const char *text) {
  size_t size = strlen(text);
  if ((size_t)(end - *at) < size || memcmp(*at, text, size) != 0) return false;
  *at += size;
  return true;
}

static const char message_head[] = "{\"type\":\"msg\",\"topic\":\"";

static int slot_of(const Group *group, Range topic) {
  size_t size = (size_t)(topic.end - topic.at);
  for (int slot = 0; slot < group->count; slot++)
    if (strncmp(group->topics[slot], topic.at, size) == 0 && group->topics[slot][size] == '\0') return slot;
  return -1;
}

/* A `msg` frame, in the order in which a node writes it: topic, offset, data; the payload is one of bench/fleet/marker.ts. */
static void take_message(Herd *herd, Socket *socket, Range frame) {
  herd->messages++;
  if (!herd->settings.checks && !herd->settings.takes_latency) return;
  Range topic = {frame.at + sizeof message_head - 1, frame.end};
  const char *at = memchr(topic.at, '"', (size_t)(topic.end - topic.at));
  if (at == NULL) at = frame.end;
  topic.end = at;
  if (skip_text(&at, frame.end, "\",\"offset\":")) read_digits(&at, frame.end);
  else skip_text(&at, frame.end, "\"");
  bool is_marked = skip_text(&at, frame.end, ",\"data\":{\"t\":");
  uint64_t due_us = read_digits(&at, frame.end);
  is_marked = is_marked && skip_text(&at, frame.end, ",\"n\":");
  uint64_t number = read_digits(&at, frame.end);
  if (is_marked && herd->settings.takes_latency) histogram_record(&herd->latencies, now_us() - (int64_t)due_us);
  if (!herd->settings.checks) return;
  uint32_t index = index_of(herd, socket);
  int slot = slot_of(group_of(&herd->settings, index), topic);
  if (slot < 0 || !is_marked) herd->foreign++;
  else deliveries_take(&herd->deliveries, index, (uint16_t)slot, (uint32_t)number);
}

static void take_subscribed(Herd *herd, Socket *socket, Range frame) {
  Range topics = json_find(frame, "topics");
  for (Range one = json_next(topics, nothing); one.at != NULL; one = json_next(topics, one)) {
    socket->answered++;
    Range error = json_find(one, "error");
    if (error.at == NULL) continue;
    Range topic = json_find(one, "topic");
    fault(herd, "%.*s was not subscribed: %.*s", (int)(topic.end - topic.at), topic.at, (int)(error.end - error.at), error.at);
  }
}

/* Acknowledged when it has an id; its latency is taken when it is marked. */
static void take_direct(Herd *herd, Socket *socket, Range frame) {
  herd->directs++;
  double due_us = json_number(json_find(json_find(frame, "data"), "t"), -1);
  if (due_us >= 0 && herd->settings.takes_latency) histogram_record(&herd->latencies, now_us() - (int64_t)due_us);
  Range id = json_find(frame, "id");
  if (id.at == NULL) return;
  char answer[256];
  int size = snprintf(answer, sizeof answer, "{\"type\":\"ack\",\"ids\":[%.*s]}", (int)(id.end - id.at), id.at);
  send_frame(herd, socket, TEXT, answer, (size_t)size);
}

static void take_text(Herd *herd, Socket *socket, Range frame) {
  const char *at = frame.at;
  if (skip_text(&at, frame.end, message_head)) return take_message(herd, socket, frame);
  Range type = json_find(frame, "type");
  if (json_is(type, "\"subscribed\"")) {
    take_subscribed(herd, socket, frame);
  } else if (json_is(type, "\"direct\"")) {
    take_direct(herd, socket, frame);
  } else if (json_is(type, "\"gap\"")) {
    herd->gaps++;
  } else if (json_is(type, "\"resync\"")) {
    /* It fell behind, which is a fault of the run; the topics are not asked for again. */
    herd->resyncs++;
  } else if (json_is(type, "\"bye\"")) {
    socket->close_code = (uint16_t)json_number(json_find(frame, "code"), 1006);
  } else if (json_is(type, "\"error\"")) {
    Range code = json_find(frame, "code"), message = json_find(frame, "message");
    fault(herd, "refused: %.*s %.*s", (int)(code.end - code.at), code.at, (int)(message.end - message.at), message.at);
  } else if (type.at == NULL) {
    fault(herd, "a frame cannot be read: %.*s", 80, frame.at);
  }
  bool has_all = socket->answered >= group_of(&herd->settings, index_of(herd, socket))->count;
  if (has_all && (json_is(type, "\"welcome\"") || json_is(type, "\"subscribed\""))) became_ready(herd, socket);
}

/* @returns whether the socket is still there */
static bool take_frame(Herd *herd, Socket *socket, uint8_t opcode, const uint8_t *payload, size_t size) {
  const char *text = (const char *)payload;
  if (opcode == TEXT) take_text(herd, socket, (Range){text, text + size});
  else if (opcode == PING) send_frame(herd, socket, PONG, text, size);
  else if (opcode == BINARY) fault(herd, "a binary frame came, though JSON was asked for");
  if (opcode != CLOSE) return true;
  if (socket->close_code == 1006 && size >= 2) socket->close_code = (uint16_t)(payload[0] << 8 | payload[1]);
  ended(herd, socket, 0);
  return false;
}

/* @returns the bytes taken; 0: there is no whole head yet */
static size_t take_head(Herd *herd, Socket *socket, const uint8_t *bytes, size_t size) {
  const uint8_t *end = memmem(bytes, size, "\r\n\r\n", 4);
  if (end == NULL) return 0;
  socket->status = size > 12 ? (uint16_t)atoi((const char *)bytes + 9) : 0;
  if (socket->status == 101) {
    if (herd->settings.ready_on_upgrade) became_ready(herd, socket);
  } else {
    char *head = strndup((const char *)bytes, (size_t)(end - bytes));
    const char *hint = strcasestr(head, "\r\nretry-after:");
    socket->retry_ms = hint == NULL ? 1000 : (uint32_t)atoi(hint + 14) * 1000;
    free(head);
  }
  return (size_t)(end - bytes) + 4;
}

/* @returns the bytes taken; the socket may be gone then */
static size_t take_frames(Herd *herd, Socket *socket, const uint8_t *bytes, size_t size) {
  size_t at = 0;
  while (size - at >= 2) {
    uint64_t payload = bytes[at + 1] & 0x7f;
    size_t head = payload < 126 ? 2 : payload == 126 ? 4 : 10;
    if (size - at < head) break;
    if (head > 2) payload = 0;
    for (size_t i = 2; i < head; i++) payload = payload << 8 | bytes[at + i];
    if (payload > size - at - head) break;
    at += head + payload;
    if (!take_frame(herd, socket, bytes[at - payload - head] & 0x0f, bytes + at - payload, payload)) break;
  }
  return at;
}

/* Everything that has come on a socket. @param has_ended whether the server has closed its side, which the last read tells */
static void read_socket(Herd *herd, Socket *socket, bool has_ended) {
  while (socket->fd >= 0) {
    size_t had = socket->rest == NULL ? 0 : socket->rest->size;
    if (had > 0) memcpy(buffer, socket->rest->bytes, had);
    ssize_t got = recv(socket->fd, buffer + had, READ_MAX, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return ended(herd, socket, got < 0 ? errno : 0);
    herd->reads++;
    free(socket->rest);
    socket->rest = NULL;
    size_t size = had + (size_t)got, at = 0;
    if (socket->status == 0) at = take_head(herd, socket, buffer, size);
    if (socket->status != 0 && socket->status != 101) return ended(herd, socket, 0);
    if (socket->status == 101) at += take_frames(herd, socket, buffer + at, size - at);
    if (socket->fd >= 0 && at < size) {
      if (size - at > REST_MAX) return fail(herd, socket, "a frame is too large for the native herd");
      socket->rest = malloc(sizeof *socket->rest + size - at);
      socket->rest->size = (uint32_t)(size - at);
      memcpy(socket->rest->bytes, buffer + at, size - at);
    }
    /* Readiness is told by edges: a read that was not filled has emptied the socket, and what comes later is a new edge. */
    if (got < READ_MAX && !has_ended) return;
  }
}

#endif
