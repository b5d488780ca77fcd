/* The board of examples/update/device.c: memories that outlive a reset, and lose their power when
 * the host says so. The pack of the image is the one that came with the program.
 *
 * Lines are a word and numbers of eight hexadecimal digits. Frames of its own, which it answers
 * with how many changes were left, and one, or 0 if the power does not fail:
 *
 *     c COUNT SHARE    let the power fail at the change of a memory after this many others, when
 *                      as many quarters of it are done
 *     r                start again
 *     n                be new: with the pack of the image, and otherwise empty
 *     x                stop */

#include "../../examples/update/device.h"
#include "board.h"

static uint32_t number[8];

#include "harness.h"

#ifndef BANK
#define BANK 4096
#endif
#ifndef SITE
#define SITE (48 * 40) /* bytes of each of the two blocks that keep points */
#endif
#ifndef BANK_COPIES
#define BANK_COPIES 0 /* 1 if packs are copied into RAM */
#endif

enum { UNIT = 64, SLOTS = 6, LOG_UNIT = 4, LOG = SLOTS * 28 };
enum { BANKS, JOURNAL, POINTS, MEMORIES, MAGIC = 0x6B657074 };

static const uint32_t sizes[MEMORIES] = {BANK, LOG, SITE};

/* What the memories hold; and how many changes the power lasts for, 0 if it does not fail. */
__attribute__((section(".kept"), aligned(16))) static struct {
    uint8_t bytes[MEMORIES][2 * (BANK > SITE ? BANK : SITE)];
    uint32_t magic, left, share;
} kept;

#if BANK_COPIES
static uint32_t copies[2][BANK / 4];
#endif

void device_restart(void) {
    board_restart();
}

/* How many bytes of a change are done; if not all, the power fails then. */
static uint32_t reaches(uint32_t size) {
    if (!kept.left || --kept.left)
        return size;
    return size * kept.share / 4;
}

static int fetch(void *memory, uint32_t address, void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)memory + address;
    uint8_t *to = (uint8_t *)bytes;
    for (; size; size--)
        *to++ = *from++;
    return 0;
}

static int program(void *memory, uint32_t address, const void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)bytes;
    uint8_t *to = (uint8_t *)memory + address;
    uint32_t left = reaches(size), at;
    for (at = 0; at < left; at++)
        to[at] = (uint8_t)(to[at] & from[at]);
    if (left < size)
        board_restart();
    return 0;
}

static int erase(void *memory, uint32_t address) {
    uint8_t *bytes = (uint8_t *)memory + address;
    unsigned which = 0;
    uint32_t size, left, at;
    while (kept.bytes[which] != memory)
        which++;
    size = sizes[which];
    left = reaches(size);
    for (at = 0; at < left; at++)
        bytes[at] = 255;
    if (left < size)
        board_restart();
    return 0;
}

const twin_storage device_banks = {0, program, erase, kept.bytes[BANKS], BANK, UNIT};
const twin_storage device_journal = {fetch, program, erase, kept.bytes[JOURNAL], LOG, LOG_UNIT};
const twin_storage device_points = {fetch, program, erase, kept.bytes[POINTS], SITE, LOG_UNIT};

static void be_new(void) {
    twin_flash pack = PLACE(board_pack);
    uint32_t size = twini_u32(pack + 8), at;
    unsigned which;
    if (size > BANK)
        stop("the pack is too large\n");
    for (which = 0; which < MEMORIES; which++)
        for (at = 0; at < 2 * sizes[which]; at++)
            kept.bytes[which][at] = 255;
    for (at = 0; at < size; at++)
        kept.bytes[BANKS][at] = pack[at];
    kept.left = 0;
    kept.magic = MAGIC;
}

void device_begin(void) {
    if (kept.magic != MAGIC)
        be_new();
}

const void *device_bank(unsigned bank) {
    const uint8_t *at = kept.bytes[BANKS] + bank * (uint32_t)BANK;
#if BANK_COPIES
    (void)fetch(kept.bytes[BANKS], bank * (uint32_t)BANK, copies[bank], BANK);
    at = (const uint8_t *)copies[bank];
#endif
    return at;
}

void device_read(uint8_t *bytes, uint32_t size) {
    board_read(bytes, size);
}

void device_say(const char *word, const uint32_t *numbers, unsigned count) {
    unsigned i;
    for (i = 0; i < count; i++)
        number[i] = numbers[i];
    write_line(word, count);
}

void device_other(uint8_t letter, const uint8_t *bytes, unsigned size) {
    uint32_t left = kept.left;
    if (letter == 'x')
        board_exit(0);
    if (letter == 'n')
        be_new();
    if (letter == 'n' || letter == 'r')
        board_restart();
    if (letter == 'c' && size == 8) {
        kept.left = 1 + bytes[0] + 256u * bytes[1];
        kept.share = bytes[4];
    }
    device_say("left", &left, 1);
}
