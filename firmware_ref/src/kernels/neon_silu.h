/* silu of a prepared model, by a table for each fraction. Entry |z| is |z| - 2 bump(|z|), so silu
 * is the mean of z and its entry, whatever the curve of the pack.
 *
 * Entries are looked up one by one, by the units that are idle while others multiply. So z leaves
 * its offset in the table in memory; later the entry replaces it there; still later it is used. */

#ifndef TWIN_KERNELS_NEON_SILU_H
#define TWIN_KERNELS_NEON_SILU_H

#include "../twin_arith.h"
#include "neon_ready.h"

#define TABLE_BYTES (2 * (TWIN_LARGEST + 1))

static void fill_table(void *table, twin_flash curve, uint8_t fraction) {
    int16_t *entries = (int16_t *)table;
    int32_t a;
    for (a = 0; a <= TWIN_LARGEST; a++)
        entries[a] = (int16_t)(a - 2 * twini_bump(curve, a, fraction));
}

/* Where the entries of z begin, in bytes. */
INLINE uint16x8_t offsets_of(int16x8_t z) {
    uint16x8_t a = vreinterpretq_u16_s16(vqabsq_s16(z));
    return vaddq_u16(a, a);
}

/* SRHADD rounds up, which makes -32767 of -32768, as it should be: SQABS has made it 32767. */
INLINE activations bend(int16x8_t z, uint16x8_t entries) {
    return vrhaddq_s16(z, vreinterpretq_s16_u16(entries));
}

/* Places, from `next` to `end`, that wait to be replaced by their entries. */
typedef struct lookups {
    const uint8_t *table;
    uint16_t *next, *end;
} lookups;

INLINE uint32_t entry_at(const uint8_t *table, uint32_t offset) {
    uint16_t entry;
    __builtin_memcpy(&entry, table + offset, sizeof entry);
    return entry;
}

/* Compilers would gather in vectors what is read here, and move it to a loop of its own. */
INLINE void look_up_two(lookups *waiting) {
    uint32_t two;
    __builtin_memcpy(&two, waiting->next, sizeof two);
    __asm__ volatile("" : "+r"(two));
    two = entry_at(waiting->table, two & 65535) | entry_at(waiting->table, two >> 16) << 16;
    __builtin_memcpy(waiting->next, &two, sizeof two);
    waiting->next += 2;
}

INLINE void look_up_four(lookups *waiting) {
    look_up_two(waiting);
    look_up_two(waiting);
}

INLINE void look_up_all(lookups *waiting) {
    while (waiting->next != waiting->end)
        look_up_four(waiting);
}

/* The entries of eight offsets, if nothing else is going on. */
#if TWIN_HOST_ARM == 64
/* An entry, and zeros. In assembly for gcc, which would insert what it loads into a copy of zeros.
 */
INLINE uint16x8_t load_entry(const uint8_t *table, uint64_t offset) {
#if defined(__clang__)
    return vsetq_lane_u16((uint16_t)entry_at(table, (uint32_t)offset), vdupq_n_u16(0), 0);
#else
    uint16x8_t one;
    __asm__("ldr %h0, %1" : "=w"(one) : "m"(*(const uint16_t *)(const void *)(table + offset)));
    return one;
#endif
}

INLINE uint32x4_t load_four(const uint8_t *table, const uint16_t *offsets) {
    uint64_t k;
    uint16x8_t ab, cd;
    __builtin_memcpy(&k, offsets, sizeof k);
    ab = vzip1q_u16(load_entry(table, k & 65535), load_entry(table, k >> 16 & 65535));
    cd = vzip1q_u16(load_entry(table, k >> 32 & 65535), load_entry(table, k >> 48));
    return vzip1q_u32(vreinterpretq_u32_u16(ab), vreinterpretq_u32_u16(cd));
}

INLINE uint16x8_t load_entries(const uint8_t *table, const uint16_t *offsets) {
    uint64x2_t low = vreinterpretq_u64_u32(load_four(table, offsets));
    uint64x2_t high = vreinterpretq_u64_u32(load_four(table, offsets + 4));
    return vreinterpretq_u16_u64(vzip1q_u64(low, high));
}
#else
INLINE uint16x8_t load_entries(const uint8_t *table, uint16_t *offsets) {
    lookups waiting = {table, offsets, offsets + 8};
    look_up_all(&waiting);
    return vld1q_u16(offsets);
}
#endif

#endif
