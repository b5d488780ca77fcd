/* What the harnesses share: numbers that nobody knows, and compiler built-ins in plain C. */

#ifndef TWIN_PROOF_H
#define TWIN_PROOF_H

#include "__fc_builtin.h"
#include <stdint.h>
#include <string.h>

/* Any number from `least` to `most`. */
#define ANY(least, most) ((uint32_t)Frama_C_unsigned_int_interval((least), (most)))

/* Any bytes, all of them initialised. */
#define FILL(at, size) Frama_C_make_unknown((char *)(at), (size))

/* What the compiler may assume, as something to be shown: objects are aligned, so an offset must
 * be. */
static inline void *proof_aligned(const void *at, unsigned to) {
    /*@ assert aligned: \offset((char *)at) % to == 0; */
    return (void *)at;
}
#define __builtin_assume_aligned proof_aligned
#define __builtin_memcpy         memcpy
#define __builtin_memset         memset

#endif
