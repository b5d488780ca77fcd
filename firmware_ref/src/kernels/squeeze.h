/* An outlet (eights.h) that drops neurons that are zero in all columns of an order. Besides
 * `activations` and `store` it needs from a kernel file
 *
 *     none     zeros
 *     which    of eight outputs are not zero in all eights of an order, as bits
 *
 * Activations wait in slots until there are enough to store; a list says which of them stay. */

#ifndef TWIN_KERNELS_SQUEEZE_H
#define TWIN_KERNELS_SQUEEZE_H

#include "eights.h"

#define SLOTS 35 /* three left over, and four octets */

typedef activations slot[TWIN_BLOCK / LANES];

typedef struct outlet {
    slot *waiting; /* SLOTS, and one of zeros for padding */
    uint8_t list[SLOTS + 3];
    uint8_t *flags, *eights;
    size_t size;
    uint32_t done, width;
    unsigned listed, next, all;
} outlet;

INLINE void begin_order(outlet *to, slot *waiting, void *block, unsigned order, unsigned all,
                        unsigned width) {
    to->waiting = waiting;
    to->flags = flags_at(block, order, width);
    to->eights = eight_at(block, order * all, width);
    to->size = size_of_eight(width);
    to->done = 0;
    to->width = width;
    to->listed = to->next = 0;
    to->all = all;
}

/* An octet's activations in eight c of the order. */
INLINE void put(outlet *to, unsigned c, const activations *h) {
    unsigned r;
    EIGHT_TIMES to->waiting[to->next + r][c] = h[r];
}

/* Store listed activations, first to last, four at a time; returns how many. */
INLINE unsigned store_listed(outlet *to) {
    unsigned from, c, r;
    for (from = 0; from + 4 <= to->listed; from += 4) {
        for (c = 0; c < to->all; c++) {
            activations four[4];
            for (r = 0; r < 4; r++)
                four[r] = to->waiting[to->list[from + r]][c];
            store(to->eights + c * to->size, to->size, to->done, four);
        }
        to->done += 4;
    }
    return from;
}

/* The octet from o on is complete; with `stay`, zeros stay, too. */
INLINE void end_octet(outlet *to, uint32_t o, int stay) {
    unsigned bits = stay ? 255 : which(to->waiting + to->next, to->all), r;
    for (r = 0; r < 8 && o + r < to->width; r++) {
        to->flags[o + r] = (uint8_t)(bits >> r & 1);
        to->list[to->listed] = (uint8_t)(to->next + r);
        to->listed += bits >> r & 1;
    }
    to->next += 8;
    if (to->next + 8 > SLOTS) {
        unsigned from = store_listed(to), left = to->listed - from, c;
        for (r = 0; r < left; r++) {
            for (c = 0; c < to->all; c++)
                to->waiting[r][c] = to->waiting[to->list[from + r]][c];
            to->list[r] = (uint8_t)r;
        }
        to->listed = to->next = left;
    }
}

/* Returns how many activations are present. */
INLINE uint16_t end_order(outlet *to) {
    uint32_t there = to->done + to->listed;
    unsigned c;
    for (c = 0; c < to->all; c++)
        to->waiting[SLOTS][c] = none();
    while (to->listed % 4)
        to->list[to->listed++] = SLOTS;
    store_listed(to);
    return (uint16_t)there;
}

#endif
