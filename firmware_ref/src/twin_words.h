/* Numbers in RAM, in the order of bytes that a storage has: little-endian, and aligned; and their
 * checksum. */

#ifndef TWIN_WORDS_H
#define TWIN_WORDS_H

#include "twin_read.h"

/* What every file of a program refers to (twin.h), once in a file: a name without bytes. */
#if TWIN_SETTINGS_NAMED
__asm__(".ifndef " TWIN_SETTINGS "\n\t"
        ".pushsection .debug_twin_settings,\"\"\n\t"
        ".weak " TWIN_SETTINGS "\n" TWIN_SETTINGS ":\n\t"
        ".popsection\n\t"
        ".endif");
#endif

#if defined(__GNUC__)
#define TWIN_ALIGNED __builtin_assume_aligned
#else
#define TWIN_ALIGNED(at, to) (at)
#endif

/* Whether the machine has that order, too. */
#if TWIN_FLASH
#define TWIN_LITTLE 1
#elif defined(__GNUC__)
#define TWIN_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#else
#define TWIN_LITTLE 0
#endif

#if TWIN_LITTLE
static inline uint32_t twini_word(const void *at) {
    uint32_t word;
    TWIN_COPY(&word, TWIN_ALIGNED(at, 4), sizeof word);
    return word;
}
static inline int32_t twini_half_word(const void *at) {
    int16_t half;
    TWIN_COPY(&half, TWIN_ALIGNED(at, 2), sizeof half);
    return half;
}
static inline void twini_put(void *at, uint32_t word) {
    TWIN_COPY(TWIN_ALIGNED(at, 4), &word, sizeof word);
}
static inline void twini_put_half(void *at, uint32_t value) {
    uint16_t half = (uint16_t)value;
    TWIN_COPY(TWIN_ALIGNED(at, 2), &half, sizeof half);
}
#else
static inline uint32_t twini_word(const void *at) {
    return twini_u32((twin_flash)at);
}
static inline int32_t twini_half_word(const void *at) {
    return twini_i16((twin_flash)at);
}
static inline void twini_put_half(void *at, uint32_t value) {
    ((uint8_t *)at)[0] = (uint8_t)value;
    ((uint8_t *)at)[1] = (uint8_t)(value >> 8);
}
static inline void twini_put(void *at, uint32_t word) {
    twini_put_half(at, word);
    twini_put_half((uint8_t *)at + 2, word >> 16);
}
#endif

/* CRC-32 as in zip, of one more word, bit by bit: small, and needs no table. Without the inversions
 * at start and end. */
static inline uint32_t twini_crc_bits(uint32_t crc, uint32_t word) {
    uint8_t bits = 32;
    crc ^= word;
    do
        crc = (crc >> 1) ^ (0xEDB88320u & (0 - (crc & 1)));
    while (--bits);
    return crc;
}

#endif
