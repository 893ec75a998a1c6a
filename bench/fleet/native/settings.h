/* What the first command says (HerdSettings of bench/fleet/commands.ts). What this program cannot do is refused here. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

/* Of `topics=`, with room for the rest of the header block: what bench/fleet/upgrade.ts puts into a handshake. */
#define HANDSHAKE_TOPIC_CHARS_MAX 8000

typedef struct {
  char *query; /* a,b,c */
  char **topics;
  uint16_t count;
} Group;

typedef struct {
  struct sockaddr_in *targets;
  char **hosts; /* host:port of each */
  size_t target_count;
  struct in_addr *sources;
  size_t source_count;
  Group *groups;
  size_t group_count;
  uint16_t slots; /* Topics of the largest group. */
  char *path, *user_prefix, *device;
  uint64_t devices;
  bool offers_protocol, ready_on_upgrade, takes_latency, checks;
  uint32_t sockets;
  uint64_t first;
  double first_number; /* -1: any */
} Settings;

static const char *read_targets(Settings *to, Range list) {
  to->target_count = json_count(list);
  if (to->target_count == 0) return "a herd needs a target";
  to->targets = calloc(to->target_count, sizeof *to->targets);
  to->hosts = calloc(to->target_count, sizeof *to->hosts);
  size_t i = 0;
  for (Range one = json_next(list, nothing); one.at != NULL; one = json_next(list, one), i++) {
    char *host = json_text(json_find(one, "host"));
    int port = (int)json_number(json_find(one, "port"), 0);
    to->targets[i].sin_family = AF_INET;
    to->targets[i].sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &to->targets[i].sin_addr) != 1) return "the native herd wants targets as IPv4 addresses";
    if (asprintf(&to->hosts[i], "%s:%d", host, port) < 0) abort();
    free(host);
  }
  return NULL;
}

static const char *read_sources(Settings *to, Range list) {
  to->source_count = json_count(list);
  to->sources = calloc(to->source_count + 1, sizeof *to->sources);
  size_t i = 0;
  for (Range one = json_next(list, nothing); one.at != NULL; one = json_next(list, one), i++) {
    char *address = json_text(one);
    if (inet_pton(AF_INET, address, &to->sources[i]) != 1) return "the native herd wants sources as IPv4 addresses";
    free(address);
  }
  return NULL;
}

static const char *read_group(Group *to, Range list) {
  to->count = (uint16_t)json_count(list);
  to->topics = calloc(to->count + 1u, sizeof *to->topics);
  to->query = malloc((size_t)(list.end - list.at) + 1);
  char *at = to->query;
  size_t i = 0;
  for (Range one = json_next(list, nothing); one.at != NULL; one = json_next(list, one), i++) {
    char *topic = json_text(one);
    to->topics[i] = topic;
    if (strpbrk(topic, "*>") != NULL) return "the native herd cannot check patterns";
    if (i > 0) *at++ = ',';
    at = stpcpy(at, topic);
  }
  *at = '\0';
  if (at - to->query > HANDSHAKE_TOPIC_CHARS_MAX) return "the native herd puts all topics into the handshake, which has no room for these";
  return NULL;
}

static const char *read_groups(Settings *to, Range list) {
  to->group_count = json_count(list);
  to->groups = calloc(to->group_count + 1, sizeof *to->groups);
  size_t i = 0;
  for (Range one = json_next(list, nothing); one.at != NULL; one = json_next(list, one), i++) {
    const char *problem = read_group(&to->groups[i], one);
    if (problem != NULL) return problem;
    if (to->groups[i].count > to->slots) to->slots = to->groups[i].count;
  }
  return NULL;
}

/* @returns what is wrong, or NULL */
static const char *read_settings(Settings *to, Range from) {
  if (!json_is(json_find(from, "codec"), "\"json\"")) return "the native herd knows the codec json only";
  if (json_is(json_find(from, "comeBack"), "true")) return "the native herd keeps no positions, so its sockets cannot come back by themselves";
  if (json_number(json_find(from, "napMs"), 0) > 0) return "the native herd does not nap";
  Range users = json_find(from, "users");
  if (json_find(users, "secret").at != NULL) return "the native herd signs no tokens: users are named by ?user=";
  to->user_prefix = users.at == NULL ? NULL : json_text(json_find(users, "prefix"));
  to->devices = (uint64_t)json_number(json_find(users, "devices"), 1);
  Range device = json_find(from, "device");
  to->device = device.at == NULL ? NULL : json_text(device);
  to->path = json_text(json_find(from, "path"));
  to->offers_protocol = json_is(json_find(from, "offerProtocol"), "true");
  to->ready_on_upgrade = json_is(json_find(from, "readyOn"), "\"upgrade\"");
  to->takes_latency = json_is(json_find(from, "latency"), "true");
  to->checks = json_is(json_find(from, "check"), "true");
  to->sockets = (uint32_t)json_number(json_find(from, "sockets"), 0);
  to->first = (uint64_t)json_number(json_find(from, "first"), 0);
  to->first_number = json_number(json_find(from, "firstNumber"), -1);
  const char *problem = read_targets(to, json_find(from, "targets"));
  if (problem == NULL) problem = read_sources(to, json_find(from, "sources"));
  if (problem == NULL) problem = read_groups(to, json_find(from, "groups"));
  return problem;
}

static const Group *group_of(const Settings *settings, uint32_t socket) {
  static const Group none = {"", NULL, 0};
  return settings->group_count == 0 ? &none : &settings->groups[(settings->first + socket) % settings->group_count];
}

#endif
