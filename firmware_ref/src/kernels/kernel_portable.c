/* The kernel for any machine with a C compiler, and the reference for all others. */

#include "../twin_kernel.h"

#define PAIRS       (TWIN_BLOCK < 4 ? TWIN_BLOCK : 4)
#define PLACE(i, c) ((i) * (2 * PAIRS) + (c))

#include "plain.h"

const twin_kernel twini_kernel_portable = {
    PAIRS,                          /* pairs */
    4,                              /* unit */
    8,                              /* align */
    TWIN_PARTIAL ? 8 : 0,           /* partial_bytes */
    2 * COLUMNS,                    /* block_bytes */
    TWIN_PARTIAL ? plain_query : 0, /* query */
    plain_first,                    /* first */
    plain_further,                  /* further */
    0,                              /* room_bytes */
    0,                              /* lines */
#if TWIN_HOST
    0, /* work_bytes */
    0, /* form */
#endif
};
