/*
 * A process of client sockets for very many of them: what bench/fleet/herd-main.ts does, with 40 bytes and a file descriptor a socket. It speaks
 * bench/fleet/commands.ts on standard input and output, and refuses what it cannot do (settings.h). Linux, libc only; bench/fleet/native-herd.ts
 * compiles and starts it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

#define EVENTS_MAX 256
/* How often sockets that wait for their time are looked through. */
#define WAITING_MS 50
/* The place of standard input among the sockets. */
#define INPUT UINT32_MAX

static Herd herd;
static long open_id = -1; /* The `open` that has not been answered. */

static void say_failed(const char *reason) {
  printf("{\"is\":\"failed\",\"reason\":\"%s\"}\n", reason);
  fflush(stdout);
  exit(1);
}

/* What was missed because too many were outstanding is not caught up with later than a tenth of a second (bench/fleet/pacer.ts). */
static uint32_t take_allowance(void) {
  int64_t now = now_us();
  herd.allowance += (double)(now - herd.paced_us) / 1000 * herd.per_ms;
  if (herd.allowance > herd.allowance_max) herd.allowance = herd.allowance_max;
  herd.paced_us = now;
  uint32_t opening = herd.in_state[OPENING];
  uint32_t count = herd.at_once > opening ? herd.at_once - opening : 0;
  if (count > herd.queue_count) count = herd.queue_count;
  if (count > herd.allowance) count = (uint32_t)herd.allowance;
  herd.allowance -= count;
  return count;
}

static void connect_socket(Socket *socket_) {
  const Settings *settings = &herd.settings;
  uint32_t index = index_of(&herd, socket_);
  enter(&herd, socket_, OPENING);
  if (socket_->was_ready && settings->checks) deliveries_forget(&herd.deliveries, index);
  *socket_ = (Socket){.at_us = now_us(), .fd = -1, .close_code = 1006, .state = OPENING};
  int fd = socket_->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ended(&herd, socket_, errno);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (settings->source_count > 0) {
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = settings->sources[index % settings->source_count]};
    /* The port is chosen at the connect: one port serves for each target again. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&source, sizeof source) != 0) return ended(&herd, socket_, errno);
  }
  const struct sockaddr_in *target = &settings->targets[(settings->first + index) % settings->target_count];
  if (connect(fd, (const struct sockaddr *)target, sizeof *target) != 0 && errno != EINPROGRESS) return ended(&herd, socket_, errno);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = index};
  if (epoll_ctl(herd.epoll, EPOLL_CTL_ADD, fd, &event) != 0) ended(&herd, socket_, errno);
}

static void send_upgrade(Socket *socket) {
  const Settings *settings = &herd.settings;
  uint32_t index = index_of(&herd, socket);
  const Group *group = group_of(settings, index);
  char user[256] = "", request[HANDSHAKE_TOPIC_CHARS_MAX + 2048];
  if (settings->user_prefix != NULL)
    snprintf(user, sizeof user, "&user=%s%llu", settings->user_prefix, (unsigned long long)((settings->first + index) / settings->devices));
  int size = snprintf(request, sizeof request,
                      "GET %s?topics=%s%s%s%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
                      settings->path, group->query, user, settings->device == NULL ? "" : "&device=",
                      settings->device == NULL ? "" : settings->device, settings->hosts[(settings->first + index) % settings->target_count],
                      settings->offers_protocol ? "Sec-WebSocket-Protocol: topicast.v1.json\r\n" : "");
  if ((size_t)size >= sizeof request) return fail(&herd, socket, "the request of the upgrade is too long");
  socket->has_asked = 1;
  if (send(socket->fd, request, (size_t)size, MSG_NOSIGNAL) != size) ended(&herd, socket, errno);
}

static void take_event(Socket *socket, uint32_t events) {
  if (socket->fd < 0) return;
  if (!socket->has_asked) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return ended(&herd, socket, error);
    if (events & EPOLLOUT) send_upgrade(socket);
  }
  bool has_ended = (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  if (has_ended || (events & EPOLLIN)) read_socket(&herd, socket, has_ended);
}

/* Those that waited long enough go back into the queue. */
static void wake_waiting(void) {
  static int64_t looked_us;
  int64_t now = now_us();
  if (herd.in_state[WAITING] == 0 || now - looked_us < WAITING_MS * 1000) return;
  looked_us = now;
  for (uint32_t i = 0; i < herd.settings.sockets; i++)
    if (herd.sockets[i].state == WAITING && herd.sockets[i].at_us <= now) enqueue(&herd, &herd.sockets[i]);
}

static void start_due(void) {
  if (herd.queue_count == 0) return;
  for (uint32_t count = take_allowance(); count > 0; count--) {
    Socket *next = &herd.sockets[herd.queue[herd.queue_from]];
    herd.queue_from = (herd.queue_from + 1) % herd.settings.sockets;
    herd.queue_count--;
    connect_socket(next);
  }
}

/* ms until something is due by time alone; -1: nothing is. */
static int wait_ms(void) {
  bool is_held = herd.in_state[OPENING] >= herd.at_once;
  if (herd.queue_count > 0 && !is_held) return herd.allowance >= 1 ? 0 : (int)((1 - herd.allowance) / herd.per_ms) + 1;
  return herd.in_state[WAITING] > 0 ? WAITING_MS : -1;
}

static void say_state(long id, bool with_latencies) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  char *latencies = with_latencies ? histogram_text(&herd.latencies) : strdup("");
  char *handshakes = with_latencies ? histogram_text(&herd.handshakes) : strdup("");
  const uint32_t *in = herd.in_state;
  printf("{\"id\":%ld,\"state\":{\"ready\":%u,\"opening\":%u,\"waiting\":%u,\"failed\":%u,\"refused\":%llu,\"closed\":{", id, in[READY],
         in[OPENING], in[WAITING] + in[QUEUED], in[FAILED], (unsigned long long)herd.refused);
  for (int i = 0; i < CODES_MAX && herd.closed[i].count > 0; i++)
    printf("%s\"%u\":%llu", i > 0 ? "," : "", herd.closed[i].code, (unsigned long long)herd.closed[i].count);
  printf("},\"messages\":%llu,\"messagesSinceBegin\":%llu,\"directs\":%llu,\"reads\":%llu,\"lost\":%lld,\"doubled\":%llu,\"disorder\":%llu",
         (unsigned long long)herd.messages, (unsigned long long)(herd.messages - herd.messages_at_begin), (unsigned long long)herd.directs,
         (unsigned long long)herd.reads, (long long)herd.deliveries.lost, (unsigned long long)herd.deliveries.doubled,
         (unsigned long long)herd.deliveries.disorder);
  printf(",\"foreign\":%llu,\"gaps\":%llu,\"notRecovered\":0,\"resyncs\":%llu,\"cpuSec\":%.6f,\"latencies\":\"%s\",\"handshakes\":\"%s\",\"faults\":[",
         (unsigned long long)herd.foreign, (unsigned long long)herd.gaps, (unsigned long long)herd.resyncs, cpu, latencies, handshakes);
  for (int i = 0; i < herd.fault_count; i++) printf("%s\"%s\"", i > 0 ? "," : "", herd.faults[i]);
  printf("]}}\n");
  fflush(stdout);
  free(latencies);
  free(handshakes);
}

static void start(Range from) {
  const char *problem = read_settings(&herd.settings, from);
  if (problem != NULL) say_failed(problem);
  uint32_t count = herd.settings.sockets;
  herd.sockets = calloc(count + 1u, sizeof *herd.sockets);
  herd.queue = calloc(count + 1u, sizeof *herd.queue);
  for (uint32_t i = 0; i < count; i++) herd.sockets[i].fd = -1;
  herd.in_state[CLOSED] = count;
  if (herd.settings.checks) deliveries_create(&herd.deliveries, count, herd.settings.slots, herd.settings.first_number);
  srand48(getpid());
  printf("{\"is\":\"started\"}\n");
  fflush(stdout);
}

static void open_all(Range ramp) {
  herd.per_ms = json_number(json_find(ramp, "perSec"), 1000) / 1000;
  herd.at_once = (uint32_t)json_number(json_find(ramp, "atOnce"), 50);
  herd.retries = json_is(json_find(ramp, "retryRefused"), "true");
  herd.allowance = 0;
  herd.allowance_max = herd.per_ms * 100 < 1 ? 1 : herd.per_ms * 100;
  herd.paced_us = now_us();
  for (uint32_t i = 0; i < herd.settings.sockets; i++)
    if (herd.sockets[i].state == CLOSED || herd.sockets[i].state == FAILED) enqueue(&herd, &herd.sockets[i]);
}

/* This share of those that are ready, evenly spread. */
static void drop(double share) {
  double owed = 0;
  for (uint32_t i = 0; i < herd.settings.sockets; i++) {
    if (herd.sockets[i].state != READY) continue;
    owed += share;
    if (owed < 1 - 1e-9) continue;
    owed -= 1;
    close_fd(&herd.sockets[i], true);
    enter(&herd, &herd.sockets[i], CLOSED);
  }
}

static void close_all(void) {
  herd.queue_count = 0;
  for (uint32_t i = 0; i < herd.settings.sockets; i++) {
    close_fd(&herd.sockets[i], true);
    enter(&herd, &herd.sockets[i], CLOSED);
  }
}

static void begin(void) {
  herd.reads = 0;
  herd.messages_at_begin = herd.messages;
  histogram_reset(&herd.latencies);
  histogram_reset(&herd.handshakes);
}

static void run_command(Range line) {
  Range what = json_find(line, "do");
  if (json_is(what, "\"start\"")) return start(json_find(line, "settings"));
  if (herd.sockets == NULL) say_failed("the first command is start");
  long id = (long)json_number(json_find(line, "id"), 0);
  if (json_is(what, "\"open\"")) {
    open_all(json_find(line, "ramp"));
    open_id = id;
    return;
  }
  if (json_is(what, "\"begin\"")) begin();
  else if (json_is(what, "\"drop\"")) drop(json_number(json_find(line, "share"), 0));
  else if (json_is(what, "\"close\"")) close_all();
  else if (!json_is(what, "\"state\"")) say_failed("the native herd does not know this command");
  say_state(id, json_is(json_find(line, "latencies"), "true"));
}

/* Whole lines of standard input; its end ends the process. */
static void read_input(void) {
  static char *text;
  static size_t size, room;
  if (room - size < READ_MAX) text = realloc(text, room = size * 2 + READ_MAX);
  ssize_t got = read(STDIN_FILENO, text + size, room - size - 1);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    if (herd.sockets != NULL) close_all();
    exit(0);
  }
  size += (size_t)got;
  char *from = text, *end;
  while ((end = memchr(from, '\n', size - (size_t)(from - text))) != NULL) {
    *end = '\0'; /* Numbers are read as strings. */
    run_command((Range){from, end});
    from = end + 1;
  }
  size -= (size_t)(from - text);
  memmove(text, from, size);
}

static void answer_open(void) {
  if (open_id < 0 || herd.queue_count > 0 || herd.in_state[OPENING] > 0 || herd.in_state[WAITING] > 0) return;
  say_state(open_id, false);
  open_id = -1;
}

int main(void) {
  /* The parent ends this process by closing its input; Ctrl-C in a terminal reaches both. */
  signal(SIGINT, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  herd.epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event input = {.events = EPOLLIN, .data.u32 = INPUT};
  if (epoll_ctl(herd.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) say_failed("standard input has to be a pipe");
  for (;;) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(herd.epoll, events, EVENTS_MAX, wait_ms());
    for (int i = 0; i < count; i++) {
      if (events[i].data.u32 == INPUT) read_input();
      else take_event(&herd.sockets[events[i].data.u32], events[i].events);
    }
    wake_waiting();
    start_due();
    answer_open();
  }
}
