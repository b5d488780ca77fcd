/* What a fuzzer counts, and prints at the end as one line of JSON. Its file lists names before it
 * includes this,
 *
 *     #define COUNTERS(COUNTER) COUNTER(sound) COUNTER(scaled)
 *
 * and counts with ADD(sound, 1). Statuses are counted by their negated number. */

#ifndef FUZZ_COUNT_H
#define FUZZ_COUNT_H

#include "fuzz.h"

enum { STATUSES = 24 };

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
