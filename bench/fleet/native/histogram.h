/*
 * Latencies as bench/fleet/latencies.ts has them: an HDR histogram of three digits from a microsecond to an hour, and its text form (version 2 of the
 * HDR format, deflated, base64). Its deflate stores and does not compress: a few kilobytes a process are not worth a library.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_US 3600000000u
/* Three digits take 2,048 sub-buckets, of which each bucket after the first uses the upper half. 22 buckets hold an hour. */
#define SUB_BUCKET_BITS 11
#define HALF_BUCKET (1u << (SUB_BUCKET_BITS - 1))
#define BUCKETS 22
#define COUNTS ((BUCKETS + 1) * HALF_BUCKET)

typedef struct {
  uint32_t counts[COUNTS];
  uint32_t last; /* The highest index that was counted. */
  uint64_t total;
} Histogram;

static void histogram_reset(Histogram *h) { memset(h, 0, sizeof *h); }

static void histogram_record(Histogram *h, int64_t us) {
  uint64_t value = us < 1 ? 1 : us > LONGEST_US ? LONGEST_US : (uint64_t)us;
  uint32_t bucket = 64 - SUB_BUCKET_BITS - (uint32_t)__builtin_clzll(value | (HALF_BUCKET * 2 - 1));
  uint32_t index = bucket * HALF_BUCKET + (uint32_t)(value >> bucket);
  h->counts[index]++;
  h->total++;
  if (index > h->last) h->last = index;
}

static uint8_t *put_big_endian(uint8_t *to, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) *to++ = (uint8_t)(value >> (8 * i));
  return to;
}

static uint8_t *put_zigzag(uint8_t *to, int64_t value) {
  uint64_t rest = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  for (; rest >= 0x80; rest >>= 7) *to++ = (uint8_t)(rest | 0x80);
  *to++ = (uint8_t)rest;
  return to;
}

/* @returns the bytes of the histogram, version 2 of the HDR format */
static size_t histogram_encode(const Histogram *h, uint8_t *into) {
  const int head = 40;
  uint8_t *at = into + head;
  for (uint32_t i = 0; i <= h->last;) {
    uint32_t zeros = 0;
    while (i + zeros <= h->last && h->counts[i + zeros] == 0) zeros++;
    /* A run of zeros is written as its negative length. */
    at = put_zigzag(at, zeros > 0 ? -(int64_t)zeros : (int64_t)h->counts[i]);
    i += zeros > 0 ? zeros : 1;
  }
  uint8_t *field = put_big_endian(into, 0x1c849313, 4);
  field = put_big_endian(field, (uint64_t)(at - into - head), 4);
  field = put_big_endian(field, 0, 4);                   /* normalizing index offset */
  field = put_big_endian(field, 3, 4);                   /* digits */
  field = put_big_endian(field, 1, 8);                   /* lowest value */
  field = put_big_endian(field, LONGEST_US, 8);          /* highest value */
  put_big_endian(field, 0x3ff0000000000000ull, 8);       /* 1.0, what integers are multiplied by */
  return (size_t)(at - into);
}

/* zlib (RFC 1950) of stored blocks (RFC 1951, 3.2.4). */
static size_t zlib_store(const uint8_t *bytes, size_t size, uint8_t *into) {
  uint8_t *at = into;
  uint32_t low = 1, high = 0;
  *at++ = 0x78;
  *at++ = 0x01;
  for (size_t from = 0; from < size;) {
    size_t part = size - from < 65535 ? size - from : 65535;
    *at++ = from + part == size;
    *at++ = (uint8_t)part;
    *at++ = (uint8_t)(part >> 8);
    *at++ = (uint8_t)~part;
    *at++ = (uint8_t)(~part >> 8);
    memcpy(at, bytes + from, part);
    at += part;
    from += part;
  }
  for (size_t i = 0; i < size; i++) {
    low = (low + bytes[i]) % 65521;
    high = (high + low) % 65521;
  }
  at = put_big_endian(at, ((uint64_t)high << 16) | low, 4);
  return (size_t)(at - into);
}

static char *base64(const uint8_t *bytes, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *text = malloc((size + 2) / 3 * 4 + 1), *at = text;
  for (size_t i = 0; i < size; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    if (i + 1 < size) three |= (uint32_t)bytes[i + 1] << 8;
    if (i + 2 < size) three |= bytes[i + 2];
    *at++ = digits[three >> 18];
    *at++ = digits[three >> 12 & 63];
    *at++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
    *at++ = i + 2 < size ? digits[three & 63] : '=';
  }
  *at = '\0';
  return text;
}

/* What `Latencies.add` takes; "" when nothing was recorded. To be freed. */
static char *histogram_text(const Histogram *h) {
  if (h->total == 0) return strdup("");
  uint8_t *plain = malloc(40 + COUNTS * 5), *packed = malloc(COUNTS * 5 + 128);
  size_t size = histogram_encode(h, plain);
  size_t stored = zlib_store(plain, size, packed + 8);
  put_big_endian(put_big_endian(packed, 0x1c849314, 4), stored, 4);
  char *text = base64(packed, stored + 8);
  free(plain);
  free(packed);
  return text;
}

#endif
