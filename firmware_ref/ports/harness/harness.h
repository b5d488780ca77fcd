/* What the programs of the harness share: the image, and lines for the host. A program declares its
 * variables first, among them `number`: what goes into a line. */

#ifndef HARNESS_H
#define HARNESS_H

#include "board.h"
#include "../../src/twin_read.h"

extern const uint8_t board_pack[], board_queries[];

#if TWIN_FLASH == 2
#define PLACE(symbol) pgm_get_far_address(symbol)
#else
#define PLACE(symbol) ((twin_flash)(symbol))
#endif

static char digit(unsigned value) {
    value &= 15;
    return (char)(value < 10 ? '0' + value : 'a' - 10 + value);
}

/* A line: a word, and `count` numbers of eight hexadecimal digits. */
static void write_line(const char *word, unsigned count) {
    const uint8_t *byte = (const uint8_t *)number;
    unsigned i;
    board_write(word);
    for (i = 0; i < 4 * count; i++) {
        char text[4], *at = text;
        unsigned value = byte[i ^ 3]; /* all boards are little-endian */
        if (i % 4 == 0)
            *at++ = ' ';
        *at++ = digit(value >> 4);
        *at++ = digit(value);
        *at = 0;
        board_write(text);
    }
    board_write("\n");
}

__attribute__((noreturn)) static void stop(const char *why) {
    board_write(why);
    board_exit(1);
}

#endif
