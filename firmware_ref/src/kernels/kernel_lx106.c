/* For the Xtensa LX106 (ESP8266): one output and four columns at a time, as it has few registers.
 *
 * It can load a byte only without its sign, and from flash only whole words: weights are read four
 * at a time, and shifted apart once for all columns. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_LX106

#define GROUP   1
#define BY_WORD 1

#include "groups.h"

#define NAME(word) group_##word
#define FIRST      group_first
#define FURTHER    group_further

#include "fold_later.h"

TWIN_DEFINE(twini_kernel_lx106) = {
    PAIRS,       /* pairs */
    4,           /* unit */
    8,           /* align */
    8,           /* partial_bytes */
    2 * COLUMNS, /* block_bytes */
    group_query, /* query */
    ANY_FIRST,   /* first */
    ANY_FURTHER, /* further */
    0,           /* room_bytes */
    0,           /* lines */
};

#endif
