/* The first serial line of Arm's MPS2 boards, a CMSDK UART, without interrupts. */

#include "board.h"

#define UART ((volatile uint32_t *)0x40004000u) /* data, state, control, interrupts, divider */

enum { DATA, STATE, CONTROL, DIVIDER = 4, FULL = 2, RECEIVE = 2, LEAST_DIVIDER = 16 };

void board_read(void *bytes, size_t size) {
    uint8_t *to = (uint8_t *)bytes;
    UART[DIVIDER] = LEAST_DIVIDER;
    UART[CONTROL] = RECEIVE;
    for (; size; size--) {
        while (!(UART[STATE] & FULL))
            ;
        *to++ = (uint8_t)UART[DATA];
    }
}
