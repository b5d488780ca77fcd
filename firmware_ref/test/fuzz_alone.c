/* The fuzzer without libFuzzer, for compilers that lack it: blind, but with the same mutations.
 *
 *     fuzz_alone SEED COUNT SECONDS FILE...
 *
 * Each of COUNT inputs is one of the files, or nothing, mutated a few times. Input n of SEED is
 * input 0 of SEED + n, so that a failure is easily repeated; where SEED + n is a multiple of 8192,
 * it is large. It ends early after SECONDS, unless that is 0. With COUNT 0 each file is tried
 * unchanged.
 */

#include "fuzz.h"
#include <time.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER
#endif
#ifdef HAS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#define AT_DEATH(print) __sanitizer_set_death_callback(print)
#else
#define AT_DEATH(print) (void)(print)
#endif

/* The runtime neither allocates nor frees, so nothing is lost by looking for neither leaks nor late
 * uses of freed memory; both take long. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:quarantine_size_mb=1:malloc_context_size=2";
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

enum { LARGE_EVERY = 8192 };

/* A file in memory. */
typedef struct start {
    uint8_t *bytes;
    size_t size;
} start;

static unsigned long long number; /* of the input */
static uint64_t rng;              /* of that input */

static void print_number(void) {
    (void)fprintf(stderr, "fuzz_alone: in execution %llu\n", number);
}

/* Replaces libFuzzer's: some bytes change, vanish or are doubled. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    uint32_t times = 1 + below(&rng, 4);
    for (; times && size; times--) {
        uint32_t at = below(&rng, (uint32_t)size), what = below(&rng, 4);
        if (what == 0) {
            size--;
            memmove(data + at, data + at + 1, size - at);
        } else if (what == 1 && size < most) {
            memmove(data + at + 1, data + at, size - at);
            size++;
        } else {
            data[at] = (uint8_t)draw(&rng);
        }
    }
    return size;
}

static start read_file(const char *name) {
    static uint8_t bytes[USUAL_BYTES];
    FILE *file = fopen(name, "rb");
    start one;
    if (!file) {
        perror(name);
        exit(2);
    }
    one.size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    one.bytes = (uint8_t *)allocate(one.size);
    memcpy(one.bytes, bytes, one.size);
    return one;
}

/* Try a file, mutated; an empty one becomes something new. */
static void try_input(const start *from, uint32_t mutations, size_t most) {
    static uint8_t input[LARGE_BYTES];
    size_t size = from->size;
    memcpy(input, from->bytes, size);
    while (mutations--)
        size = LLVMFuzzerCustomMutator(input, size, most, draw(&rng));
    LLVMFuzzerTestOneInput(input, size);
}

int main(int count, char **arguments) {
    unsigned long long seed, inputs, i;
    uint32_t files = (uint32_t)count - 4;
    time_t end;
    start *all;
    if (count < 5)
        return 2;
    AT_DEATH(print_number);
    seed = strtoull(arguments[1], 0, 10);
    inputs = strtoull(arguments[2], 0, 10);
    end = time(0) + (time_t)strtoul(arguments[3], 0, 10);
    all = (start *)allocate(sizeof *all * (files + 1));
    for (i = 0; i < files; i++)
        all[i] = read_file(arguments[4 + i]);
    all[files].bytes = (uint8_t *)allocate(0);
    all[files].size = 0;
    for (i = 0; !inputs && i < files; i++, number++)
        try_input(all + i, 0, USUAL_BYTES);
    for (; number < inputs; number++) {
        rng = (seed + number) * 0xD1342543DE82EF95u; /* far from that of the next input */
        if ((seed + number) % LARGE_EVERY == 0) {
            try_input(all + files, one_in(&rng, 4) ? 2 : 1, LARGE_BYTES);
        } else {
            i = one_in(&rng, 2) ? files : below(&rng, files);
            try_input(all + i, 1 + (one_in(&rng, 4) ? 0 : 2 + any_size(&rng, 3)), USUAL_BYTES);
        }
        if (number % 256 == 0 && strcmp(arguments[3], "0") != 0 && time(0) >= end)
            break;
    }
    while (files--)
        free(all[files].bytes);
    free(all);
    return 0;
}
