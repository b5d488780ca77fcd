/* A template: the kernel of groups.h under a name. Before it is included:
 *
 *     KERNEL    the name
 *     FIRST     the function of the first layer: group_first, or a faster one
 */

#define NAME(word) group_##word
#define FURTHER    group_further

#include "fold_later.h"

TWIN_DEFINE(KERNEL) = {
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
