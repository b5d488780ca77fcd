/* A memory that is erased and programmed like flash, and loses power at bad moments. */

#ifndef FLASH_H
#define FLASH_H

#include "twin_journal.h"

enum { BLOCK = 16384, NEVER = 0x7FFFFFFF };

typedef struct flash {
    uint32_t block_size, program_size;
    uint64_t random;
    uint32_t erased; /* what erasing makes of a byte: 255 or 0 */
    uint32_t key;    /* bytes are encrypted with this; 0 if they are not */
    int32_t cut;     /* changes until the power is cut, or NEVER */
    int32_t changes; /* erase and program operations so far */
    int32_t error;   /* calls until one reports an error, or NEVER */
    int32_t calls;   /* of any function so far */
    int32_t burst;   /* how many calls in a row report errors */
    int32_t fail;    /* address that is not programmed, with an error; or -1 */
    int32_t skip;    /* address that is not programmed, without an error; or -1 */
    int32_t lie;     /* address that is programmed, but with an error; or -1 */
    int32_t stuck;   /* address of a block that is not erased, with an error; or -1 */
    int32_t unread;  /* address that is not read, with an error; or -1 */
    uint32_t once;   /* whether it refuses to program bytes twice */
    uint32_t dead;   /* whether the power is off */
    uint32_t fault;  /* first line here that saw a misuse of flash */
    uint32_t hit[2]; /* whether a change of this block failed since it was erased */
    uint32_t erasures[2];
    uint32_t is_worn;                          /* whether there are bits that never change */
    uint8_t cell[2 * BLOCK], weak[2 * BLOCK];  /* bits, and which of them are undecided */
    uint8_t worn[2 * BLOCK], level[2 * BLOCK]; /* which bits never change, and what they are */
    uint8_t done[2 * BLOCK], meant[2 * BLOCK]; /* whether a byte was programmed, and to what */
    uint8_t pad[2 * BLOCK];                    /* what bytes are encrypted with */
} flash;

/* Random numbers, below 2^32 and below a limit. */
uint32_t flash_draw(flash *memory);
uint32_t flash_below(flash *memory, uint32_t limit);

/* A new memory, erased, and its storage functions. */
void flash_reset(flash *memory, twin_storage *storage, uint32_t block_size, uint16_t program_size,
                 uint32_t erased, uint32_t key, uint32_t seed);

/* Let a bit never change from what it is. */
void flash_wear(flash *memory, uint32_t address, uint8_t bit, unsigned level);

/* Copy all but the state of the random numbers. */
void flash_copy(flash *to, const flash *from);

#endif
