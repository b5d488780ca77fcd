/* Between structs in RAM and records of a journal. */

#ifndef TWIN_RECORD_H
#define TWIN_RECORD_H

#include "twin_words.h"

/* Copy words to the order of bytes that a record has, or back. Not memcpy, which would add 300
 * bytes if nothing else links it. */
static inline void twini_copy_words(void *to, const void *from, unsigned words) {
    const uint8_t *at = (const uint8_t *)from;
    uint8_t *into = (uint8_t *)to;
    do {
        uint32_t word;
        TWIN_COPY(&word, TWIN_ALIGNED(at, 4), sizeof word);
        twini_put(into, word);
        at += 4;
        into += 4;
    } while (--words);
}

#endif
