/* What each socket has got of each of its topics: the numbers of bench/fleet/deliveries.ts without offsets, 8 bytes a topic and socket. */
#ifndef DELIVERIES_H
#define DELIVERIES_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
  uint32_t next;     /* The number that has to come. */
  uint32_t seen : 31; /* Bit i: the number i before the newest was seen. */
  uint32_t any : 1;  /* Whatever comes first. */
} Delivery;

#define SEEN_BITS 31
#define ALL_SEEN 0x7fffffffu

typedef struct {
  Delivery *of; /* By socket and slot. */
  uint16_t slots;
  int64_t lost;
  uint64_t doubled, disorder;
} Deliveries;

static void deliveries_create(Deliveries *d, uint32_t sockets, uint16_t slots, double first_number) {
  d->slots = slots;
  d->of = calloc((size_t)sockets * slots + 1, sizeof *d->of);
  for (size_t i = 0; i < (size_t)sockets * slots; i++)
    d->of[i] = (Delivery){first_number < 0 ? 0 : (uint32_t)first_number, ALL_SEEN, first_number < 0};
}

/* What was missed is not lost: the next message may have any number. */
static void deliveries_forget(Deliveries *d, uint32_t socket) {
  for (uint16_t slot = 0; slot < d->slots; slot++)
    d->of[(size_t)socket * d->slots + slot] = (Delivery){0, ALL_SEEN, 1};
}

static void deliveries_take(Deliveries *d, uint32_t socket, uint16_t slot, uint32_t number) {
  Delivery *one = &d->of[(size_t)socket * d->slots + slot];
  if (one->any || number >= one->next) {
    uint32_t step = one->any ? 1 : number - one->next + 1;
    d->lost += step - 1;
    one->seen = step >= SEEN_BITS ? 1 : (one->seen << step | 1);
    one->next = number + 1;
    one->any = 0;
    return;
  }
  uint32_t back = one->next - 1 - number;
  if (back >= SEEN_BITS || (one->seen >> back & 1)) {
    d->doubled++;
    return;
  }
  one->seen |= 1u << back;
  d->lost--;
  d->disorder++;
}

#endif
