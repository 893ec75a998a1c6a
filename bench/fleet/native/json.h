/*
 * Finds values in JSON text that others have written, without building anything of it: the bench and the node write valid JSON, so what is
 * malformed merely finds nothing. Every range ends before `end`.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *at;
  const char *end;
} Range;

static const Range nothing = {NULL, NULL};

static const char *json_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' || *at == ',' || *at == ':')) at++;
  return at;
}

static const char *json_skip_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\') at++;
  return at < end ? at + 1 : end;
}

/* The end of the value that begins at `at`. */
static const char *json_skip(const char *at, const char *end) {
  int depth = 0;
  while (at < end) {
    char c = *at;
    if (c == '"') {
      at = json_skip_string(at, end);
    } else {
      if (c == '{' || c == '[') depth++;
      if (c == '}' || c == ']') {
        if (depth == 0) return at;
        depth--;
      }
      if (depth == 0 && c == ',') return at;
      at++;
    }
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) return at;
  }
  return end;
}

/* The value of a key of an object; strings with their quotes. */
static Range json_find(Range object, const char *key) {
  if (object.at == NULL || object.at >= object.end || *object.at != '{') return nothing;
  size_t key_length = strlen(key);
  const char *at = json_space(object.at + 1, object.end);
  while (at < object.end && *at == '"') {
    const char *name_end = json_skip_string(at, object.end);
    bool is_it = (size_t)(name_end - at) == key_length + 2 && memcmp(at + 1, key, key_length) == 0;
    const char *value = json_space(name_end, object.end);
    const char *value_end = json_skip(value, object.end);
    if (is_it) return (Range){value, value_end};
    at = json_space(value_end, object.end);
  }
  return nothing;
}

/* Goes through an array: the element after `before` (the first after `nothing`), `nothing` at the end. */
static Range json_next(Range array, Range before) {
  if (array.at == NULL || array.at >= array.end || *array.at != '[') return nothing;
  const char *at = json_space(before.at == NULL ? array.at + 1 : before.end, array.end);
  if (at >= array.end || *at == ']') return nothing;
  return (Range){at, json_skip(at, array.end)};
}

static size_t json_count(Range array) {
  size_t count = 0;
  for (Range one = json_next(array, nothing); one.at != NULL; one = json_next(array, one)) count++;
  return count;
}

/* `otherwise` when it is not there. */
static double json_number(Range value, double otherwise) {
  return value.at == NULL ? otherwise : strtod(value.at, NULL);
}

static bool json_is(Range value, const char *text) {
  size_t length = strlen(text);
  return value.at != NULL && (size_t)(value.end - value.at) == length && memcmp(value.at, text, length) == 0;
}

/* What is between the quotes of a string, as a string of its own; "" when there is none. Escapes stay as they are. */
static char *json_text(Range value) {
  if (value.at == NULL || value.end - value.at < 2 || *value.at != '"') return strdup("");
  return strndup(value.at + 1, (size_t)(value.end - value.at - 2));
}

#endif
