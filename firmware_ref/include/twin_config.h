/* What goes into the runtime. Every knob can be set with -D; the values here are the defaults.
 *
 * Model, scratch and code must be compiled with the same values. */

#ifndef TWIN_CONFIG_H
#define TWIN_CONFIG_H

#include <stdint.h>

/* 1: predict from float features, in the user's units (twin_predict and its like).
 * 0: integers only, for devices where float costs more than it brings (twin_predict_raw). */
#ifndef TWIN_FLOAT
#define TWIN_FLOAT 1
#endif

/* 1: packs in which the nearest anchors predict, and twin_set_neighbours.
 * 0: such packs are refused as unsupported. */
#ifndef TWIN_NEIGHBOURS
#define TWIN_NEIGHBOURS 1
#endif

/* 1: packs with the silu activation. 0: they are refused as unsupported. */
#ifndef TWIN_SILU
#define TWIN_SILU 1
#endif

/* 1: packs with 16-bit kernels. 0: they are refused as unsupported. */
#ifndef TWIN_INT16
#define TWIN_INT16 1
#endif

/* 1: twin_text gives a line for each status. 0: it gives "", and no text is linked. */
#ifndef TWIN_TEXT
#if defined(__AVR__)
#define TWIN_TEXT 0 /* there, text would lie in RAM */
#else
#define TWIN_TEXT 1
#endif
#endif

/* Anchors evaluated side by side, at most. Each weight is loaded once for all of them; each takes
 * 4 bytes of scratch for every neuron of a layer that is followed by another. A kernel may take
 * fewer. 64-bit machines have the registers and the memory for many. */
#ifndef TWIN_BLOCK
#if UINTPTR_MAX > 0xFFFFFFFFu
#define TWIN_BLOCK 32
#elif defined(__AVR__)
#define TWIN_BLOCK 1
#else
#define TWIN_BLOCK 2
#endif
#endif

/* 1: the query's share in the first layer is computed once and kept, 8 bytes of scratch for each of
 * its neurons. 0: it is computed again for each anchor, which doubles the work of that layer. */
#ifndef TWIN_PARTIAL
#if defined(__AVR__)
#define TWIN_PARTIAL 0
#else
#define TWIN_PARTIAL 1
#endif
#endif

/* Where packs lie: 0 in memory that pointers reach; on AVR 1 in the first 64 KB of flash, or 2
 * anywhere in flash, with 32-bit addresses (pgm_get_far_address). */
#ifndef TWIN_FLASH
#if defined(__AVR__)
#define TWIN_FLASH 1
#else
#define TWIN_FLASH 0
#endif
#endif

/* Not knobs: 1 where there is a kernel for a Cortex-M; bytes of scratch that it takes for silu. */
#if defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' &&               \
    !defined(__ARM_BIG_ENDIAN) && TWIN_BLOCK >= 2 && TWIN_PARTIAL
#define TWIN_CORTEX_M 1
#else
#define TWIN_CORTEX_M 0
#endif
#if TWIN_CORTEX_M
#define TWIN_SILU_BYTES 1024
#else
#define TWIN_SILU_BYTES 0
#endif

#endif
