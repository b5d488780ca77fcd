/* What all parts of the fuzzers need: random numbers, numbers in bytes, memory, claims and
 * counters. Nothing here is shared with the runtime, so that a mistake in one cannot hide in the
 * other. */

#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libFuzzer, or fuzz_alone.c, calls, and what it offers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Bytes of a usual input, and of one that is as large as the format allows in some way. */
enum { USUAL_BYTES = 8192, LARGE_BYTES = 5 << 19 };

/* The next random number; any start will do (splitmix64). */
static inline uint32_t draw(uint64_t *rng) {
    uint64_t z = *rng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 32);
}

static inline uint32_t below(uint64_t *rng, uint32_t n) {
    return draw(rng) % n;
}

static inline int one_in(uint64_t *rng, uint32_t n) {
    return !below(rng, n);
}

/* A number of at most so many bits, small ones as often as large ones. */
static inline uint32_t any_size(uint64_t *rng, uint32_t bits) {
    return below(rng, (uint32_t)1 << below(rng, bits + 1));
}

/* Numbers of 1, 2 or 4 bytes, the lowest first. */
static inline uint32_t get(const uint8_t *at, uint32_t width) {
    uint32_t value = 0;
    while (width--)
        value = value << 8 | at[width];
    return value;
}

static inline int32_t get_signed(const uint8_t *at, uint32_t width) {
    uint32_t value = get(at, width), sign = (uint32_t)1 << (8 * width - 1);
    return (int32_t)(((int64_t)value ^ sign) - sign);
}

static inline void put(uint8_t *at, uint32_t value, uint32_t width) {
    for (; width--; value >>= 8)
        *at++ = (uint8_t)value;
}

static inline uint32_t magnitude(int32_t a) {
    return a < 0 ? 0 - (uint32_t)a : (uint32_t)a;
}

static inline uint32_t up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The CRC-32 of zip, four bytes at a time: a fuzzer computes it more often than anything else. */
static inline uint32_t crc_of(const uint8_t *at, uint32_t size) {
    static uint32_t table[4][256];
    uint32_t crc = ~(uint32_t)0, word, i, k;
    for (i = 0; !table[3][255] && i < 256; i++) {
        for (table[0][i] = i, k = 0; k < 8; k++)
            table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? 0xEDB88320u : 0);
    }
    for (k = 1; !table[3][255] && k < 4; k++)
        for (i = 0; i < 256; i++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
    for (; size >= 4; size -= 4, at += 4) {
        memcpy(&word, at, sizeof word); /* hosts that fuzz are little-endian */
        crc ^= word;
        crc = table[3][crc & 255] ^ table[2][crc >> 8 & 255] ^ table[1][crc >> 16 & 255] ^
              table[0][crc >> 24];
    }
    while (size--)
        crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return ~crc;
}

/* Executions before the current one. */
static unsigned long long executions;

static inline void fail(const char *claim, const char *file, int line) {
    (void)fprintf(stderr, "%s:%d: does not hold, in execution %llu: %s\n", file, line, executions,
                  claim);
    abort();
}
#define CHECK(claim) ((claim) ? (void)0 : fail(#claim, __FILE__, __LINE__))

/* Memory of exactly this size, so that AddressSanitizer sees the first byte beyond it. */
static inline void *allocate(size_t size) {
    void *block = malloc(size ? size : 1);
    CHECK(block);
    return block;
}

/* Memory that starts `lead` bytes into a block, as no alignment is promised, full of garbage. */
typedef struct memory {
    uint8_t *block, *start;
    uint32_t size;
} memory;

static inline memory allocate_anywhere(uint32_t size, uint64_t *rng) {
    uint32_t lead = below(rng, 16);
    memory all;
    all.size = size;
    all.block = (uint8_t *)allocate(lead + size);
    all.start = all.block + lead;
    memset(all.block, (int)below(rng, 256), lead + size);
    return all;
}

/* What a fuzzer counts, and prints at the end as one line of JSON. Its file lists names before it
 * includes this,
 *
 *     #define COUNTERS(COUNTER) COUNTER(sound) COUNTER(scaled)
 *
 * and counts with ADD(sound, 1). Statuses are counted by their negated number. */
#ifdef COUNTERS
enum { STATUSES = 33 };

#define COUNTER_NUMBER(name) COUNT_##name,
#define COUNTER_NAME(name)   #name,
enum { COUNTERS(COUNTER_NUMBER) COUNTS };

static unsigned long long statuses[STATUSES], counts[COUNTS];

#define ADD(name, more) (counts[COUNT_##name] += (more))

static void print_numbers(const char *title, const char *const *names,
                          const unsigned long long *numbers, unsigned count) {
    unsigned i;
    (void)printf("\"%s\": {", title);
    for (i = 0; i < count; i++)
        (void)printf("%s\"%s\": %llu", i ? ", " : "", names[i], numbers[i]);
    (void)printf("}");
}

static void print_counts(void) {
    static const char *const names[] = {COUNTERS(COUNTER_NAME)};
    unsigned i;
    (void)printf("\"executions\": %llu, \"statuses\": [", executions);
    for (i = 0; i < STATUSES; i++)
        (void)printf("%s%llu", i ? ", " : "", statuses[i]);
    (void)printf("], ");
    print_numbers("counts", names, counts, COUNTS);
}
#endif

#endif
