/* Configuration of the runtime. Every setting can be changed with -D; these are the defaults.
 *
 * Program and library must be compiled with the same values: otherwise they do not link, and the
 * linker names two forms of twin_settings or twin_open that show the difference. */

#ifndef TWIN_CONFIG_H
#define TWIN_CONFIG_H

#include <stdint.h>

/* 1: predict from float features, in the user's units (twin_predict and related functions).
 * 0: integers only, for devices where floats cost too much (twin_predict_raw). */
#ifndef TWIN_FLOAT
#define TWIN_FLOAT 1
#endif

/* 1: packs that predict from nearest anchors, and twin_set_neighbors.
 * 0: such packs are refused as unsupported. */
#ifndef TWIN_NEIGHBORS
#define TWIN_NEIGHBORS 1
#endif

/* 1: packs with intervals, feature ranges and fill values for missing features.
 * 0: packs with intervals are refused as unsupported, and nothing flags unusual queries to other
 * packs. */
#ifndef TWIN_INTERVALS
#if defined(__AVR__)
#define TWIN_INTERVALS 0
#else
#define TWIN_INTERVALS 1
#endif
#endif

/* 1: points measured on site can be learnt (twin_store.h). 0: no such code. Only on AVR does it
 * cost programs that do not call it. */
#ifndef TWIN_STORE
#if defined(__AVR__)
#define TWIN_STORE 0
#else
#define TWIN_STORE 1
#endif
#endif

/* 1: packs with the silu activation. 0: they are refused as unsupported. */
#ifndef TWIN_SILU
#define TWIN_SILU 1
#endif

/* 1: packs with 16-bit kernels. 0: they are refused as unsupported. */
#ifndef TWIN_INT16
#define TWIN_INT16 1
#endif

/* 1: packs with an input map: a curve for each feature, in front of the networks.
 * 0: they are refused as unsupported. */
#ifndef TWIN_MAP
#define TWIN_MAP 1
#endif

/* 1: packs with a target curve, which brings estimates to the units of the target.
 * 0: they are refused as unsupported. */
#ifndef TWIN_TARGET_CURVE
#define TWIN_TARGET_CURVE 1
#endif

/* 1: twin_text returns a line for each status. 0: it returns "", and no text is linked. On AVR the
 * text would be in RAM. */
#ifndef TWIN_TEXT
#if defined(__AVR__)
#define TWIN_TEXT 0
#else
#define TWIN_TEXT 1
#endif
#endif

/* 1: kernels for host processors, chosen when a pack is opened
 * (twin_host.h). 0: the portable kernel. */
#ifndef TWIN_HOST
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__)) &&                          \
    (defined(__linux__) || defined(__APPLE__) || defined(__FreeBSD__))
#define TWIN_HOST 1
#elif defined(__GNUC__) && defined(__ARM_PCS_VFP) && defined(__linux__)
#define TWIN_HOST 1
#else
#define TWIN_HOST 0
#endif
#endif

/* Most targets of a pack, 1 to 8. Packs of more are refused as unsupported. With 1 there is no code
 * for several, and none of their cost. Each further one takes 40 bytes of a twin_run. */
#ifndef TWIN_TARGETS
#if TWIN_HOST
#define TWIN_TARGETS 8
#else
#define TWIN_TARGETS 1
#endif
#endif
#if TWIN_TARGETS < 1 || TWIN_TARGETS > 8
#error "TWIN_TARGETS must be 1 to 8"
#endif

/* 1: opening a pack reads four bytes at a time, with a 64-byte table for the checksum.
 * 0: it takes three to four times as long, and some 100 bytes less of flash. */
#ifndef TWIN_QUICK_OPEN
#if defined(__AVR__)
#define TWIN_QUICK_OPEN 0
#else
#define TWIN_QUICK_OPEN 1
#endif
#endif

/* 1: a pack can also be opened in steps (twin_open_step). 0: only in one go, which saves some 300
 * bytes of code. */
#ifndef TWIN_OPEN_STEPS
#if defined(__AVR__)
#define TWIN_OPEN_STEPS 0
#else
#define TWIN_OPEN_STEPS 1
#endif
#endif

/* TWIN_CRC: name of a function of yours that computes the checksum of a pack, for devices with
 * CRC-32 in hardware; twin.h declares it. Undefined by default. */

/* Most anchors evaluated side by side. Each weight is loaded once for all of them; each takes 4
 * bytes of scratch for every neuron of all layers but the last. A kernel may use fewer. Hosts and
 * 64-bit machines have the registers and the memory for many. */
#ifndef TWIN_BLOCK
#if TWIN_HOST || UINTPTR_MAX > 0xFFFFFFFFu
#define TWIN_BLOCK 32
#elif defined(__AVR__)
#define TWIN_BLOCK 1
#else
#define TWIN_BLOCK 2
#endif
#endif
#if TWIN_BLOCK < 1 || TWIN_BLOCK > 255
#error "TWIN_BLOCK must be 1 to 255"
#endif

/* 1: the query's contribution to the first layer is computed once and kept, in 8 bytes of scratch
 * for each of its neurons. 0: it is recomputed for each anchor, which doubles the work there. */
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

/* Not settings: 1 if there is a kernel for this Cortex-M, written for the GNU assembler; bytes of
 * scratch that it takes for silu; and bytes of scratch that host kernels work in. */
#if defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && !defined(__ARMCC_VERSION) &&               \
    !defined(__ICCARM__) && !defined(__ARM_BIG_ENDIAN)
#if __ARM_ARCH_PROFILE == 'M' && TWIN_BLOCK >= 2 && TWIN_PARTIAL
#define TWIN_CORTEX_M 1
#endif
#endif
#ifndef TWIN_CORTEX_M
#define TWIN_CORTEX_M 0
#endif
#if TWIN_CORTEX_M
#define TWIN_SILU_BYTES 1024
#else
#define TWIN_SILU_BYTES 0
#endif
#if TWIN_HOST
#define TWIN_WORK_BYTES 32768
#else
#define TWIN_WORK_BYTES 0
#endif

#endif
