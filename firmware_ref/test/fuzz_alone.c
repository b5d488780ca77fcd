/* The fuzzer without libFuzzer, for compilers that lack it: blind, but with the same mutations.
 *
 *     fuzz_alone SEED COUNT FILE...
 *
 * Each of COUNT inputs is one of the files, randomly mutated a few times. Input n of SEED is input
 * 0 of SEED + n, so that a failure is easily repeated. With COUNT 0 each file is tried unchanged.
 * */

#include "fuzz_pack.h"
#include <stdio.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WATCHED
#endif
#ifdef WATCHED
#include <sanitizer/common_interface_defs.h>
#define WHEN_IT_DIES(tell) __sanitizer_set_death_callback(tell)
#else
#define WHEN_IT_DIES(tell) (void)(tell)
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

enum { MOST_BYTES = 8192 };

static unsigned long long number; /* of the input */
static uint64_t luck;             /* of that input */

static void tell_where(void) {
    (void)fprintf(stderr, "fuzz_alone: in input %llu\n", number);
}

/* Replaces libFuzzer's: some bytes change, vanish or are doubled. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    uint32_t times = 1 + below(&luck, 4);
    for (; times && size; times--) {
        uint32_t at = below(&luck, (uint32_t)size), what = below(&luck, 4);
        if (what == 0) {
            size--;
            memmove(data + at, data + at + 1, size - at);
        } else if (what == 1 && size < most) {
            memmove(data + at + 1, data + at, size - at);
            size++;
        } else {
            data[at] = (uint8_t)draw(&luck);
        }
    }
    return size;
}

static void try_file(const char *name, uint32_t mutations) {
    static uint8_t pack[MOST_BYTES];
    FILE *file = fopen(name, "rb");
    size_t size;
    if (!file) {
        perror(name);
        exit(2);
    }
    size = fread(pack, 1, sizeof pack, file);
    (void)fclose(file);
    while (mutations--)
        size = LLVMFuzzerCustomMutator(pack, size, sizeof pack, draw(&luck));
    LLVMFuzzerTestOneInput(pack, size);
}

int main(int count, char **arguments) {
    unsigned long long seed, inputs, files;
    if (count < 4)
        return 2;
    WHEN_IT_DIES(tell_where);
    seed = strtoull(arguments[1], 0, 10);
    inputs = strtoull(arguments[2], 0, 10);
    files = (unsigned)count - 3;
    for (; number < (inputs ? inputs : files); number++) {
        luck = (seed + number) * 0xD1342543DE82EF95u; /* far from that of the next input */
        if (inputs)
            try_file(arguments[3 + below(&luck, (uint32_t)files)], 1 + below(&luck, 8));
        else
            try_file(arguments[3 + number], 0);
    }
    return 0;
}
