/* Reads numbers from a pack: little-endian, in any kind of memory.
 *
 * Arrays in a pack are aligned to their elements, as twin_open requires an aligned pack.
 * __builtin_memcpy is a plain load even where -ffreestanding makes memcpy a call. */

#ifndef TWIN_READ_H
#define TWIN_READ_H

#include "twin.h"

#if defined(__GNUC__)
#define TWIN_COPY (void)__builtin_memcpy
#else
#include <string.h>
#define TWIN_COPY (void)memcpy
#endif

/* A function that is not worth inlining, even into its only caller. */
#if defined(__GNUC__)
#define TWIN_NOT_INLINE __attribute__((noinline))
#else
#define TWIN_NOT_INLINE
#endif

#if TWIN_FLASH
#include <avr/pgmspace.h>
#endif

#if TWIN_FLASH == 2
static inline uint8_t twini_u8(twin_flash at) {
    return pgm_read_byte_far(at);
}
static inline uint16_t twini_u16(twin_flash at) {
    return pgm_read_word_far(at);
}
static inline uint32_t twini_u32(twin_flash at) {
    return pgm_read_dword_far(at);
}
#elif TWIN_FLASH == 1
static inline uint8_t twini_u8(twin_flash at) {
    return pgm_read_byte(at);
}
static inline uint16_t twini_u16(twin_flash at) {
    return pgm_read_word(at);
}
/* Four instructions, but in a large file the compiler would rather call them. */
static inline __attribute__((always_inline)) uint32_t twini_u32(twin_flash at) {
    return pgm_read_dword(at);
}
#else
static inline uint8_t twini_u8(twin_flash at) {
    return *at;
}
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint16_t twini_u16(twin_flash at) {
    uint16_t value;
    TWIN_COPY(&value, __builtin_assume_aligned(at, 2), sizeof value);
    return value;
}
static inline uint32_t twini_u32(twin_flash at) {
    uint32_t value;
    TWIN_COPY(&value, __builtin_assume_aligned(at, 4), sizeof value);
    return value;
}
#else
static inline uint16_t twini_u16(twin_flash at) {
    return (uint16_t)(at[0] | (uint16_t)at[1] << 8);
}
static inline uint32_t twini_u32(twin_flash at) {
    return twini_u16(at) | (uint32_t)twini_u16(at + 2) << 16;
}
#endif
#endif

static inline int8_t twini_i8(twin_flash at) {
    return (int8_t)twini_u8(at);
}
static inline int16_t twini_i16(twin_flash at) {
    return (int16_t)twini_u16(at);
}
static inline int32_t twini_i32(twin_flash at) {
    return (int32_t)twini_u32(at);
}

/* Weight number i of a row. */
static inline int32_t twini_weight(twin_flash row, uint32_t i, unsigned wide) {
    return wide ? twini_i16(row + 2 * i) : twini_i8(row + i);
}

/* A number of bytes in a valid pack: in the first 64 KB of flash, 16 bits are enough. */
#if TWIN_FLASH == 1
typedef uint16_t twini_size;
#else
typedef uint32_t twini_size;
#endif

/* n rounded up to a multiple of a power of two. */
static inline uint32_t twini_align(uint32_t n, uint32_t to) {
    return (n + to - 1) & ~(to - 1);
}

#endif
