/* For Cortex-M without the DSP extension (M0, M0+, M3): one 32-bit multiply-add at a time.
 *
 * A block is two pairs, four columns, and its activations are 32 bits wide: one load brings the
 * four of an input, ready to be multiplied. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_THUMB

#define NAME(word)  thumb_##word
#define PAIRS       2
#define ELEMENT     int32_t
#define PLACE(i, c) (4 * (i) + (c))

#include "arm_frames.h"
#include "plain.h"
#include "block.h"

/* The sums of an output: `count` weights, a multiple of 4, with each column. All of sum[] start
 * from sum[0]. */
TWIN_ASSEMBLY void twini_thumb_further(twin_flash weights, const void *in, uint32_t count,
                                       int32_t *sum);

/* The same for the first layer. `in` are features of two anchors, alternating; sum[2] and sum[3]
 * start from sum[0] and sum[1]. */
TWIN_ASSEMBLY void twini_thumb_first(twin_flash a, twin_flash b, const void *in, uint32_t count,
                                     int32_t *sum);

/* clang-format off */
#define INPUTS(one) one one one one
#if __ARM_ARCH >= 7
#define INPUT                                                                                      \
    "ldrsb r12, [r0], #1\n"                                                                        \
    "ldmia r1!, {r8-r11}\n"                                                                        \
    "mla r4, r8, r12, r4\n"                                                                        \
    "mla r5, r9, r12, r5\n"                                                                        \
    "mla r6, r10, r12, r6\n"                                                                       \
    "mla r7, r11, r12, r7\n"
#define SAVE    "push {r4-r11, lr}\n" PUSHED_R4_TO_R11
#define RESTORE "pop {r4-r11, pc}\n"
#define FURTHER                                                                                    \
    "ldr r4, [r3]\n"                                                                               \
    "mov r5, r4\n"                                                                                 \
    "mov r6, r4\n"                                                                                 \
    "mov r7, r4\n"                                                                                 \
    "1:\n"                                                                                         \
    INPUTS(INPUT)                                                                                  \
    "subs r2, r2, #4\n"                                                                            \
    "bne 1b\n"                                                                                     \
    "stmia r3!, {r4-r7}\n"
#define FIRST                                                                                      \
    "ldr r12, [sp, #36]\n"                                                                         \
    "ldrd r4, r5, [r12]\n"                                                                         \
    "mov r6, r4\n"                                                                                 \
    "mov r7, r5\n"                                                                                 \
    "1:\n"                                                                                         \
    "ldmia r2!, {r8, r9}\n"                                                                        \
    "ldrsb r10, [r1], #1\n"                                                                        \
    "ldrsb r11, [r0], #1\n"                                                                        \
    "mla r4, r8, r10, r4\n"                                                                        \
    "mla r5, r8, r11, r5\n"                                                                        \
    "mla r6, r9, r10, r6\n"                                                                        \
    "mla r7, r9, r11, r7\n"                                                                        \
    "subs r3, r3, #1\n"                                                                            \
    "bne 1b\n"                                                                                     \
    "stmia r12, {r4-r7}\n"
#else
/* Sums are in r8 .. r11, and their address in r12. Rows are indexed from their ends, up to zero. */
#define INPUT                                                                                      \
    "ldrsb r7, [r0, r2]\n"                                                                         \
    "ldmia r1!, {r3-r6}\n"                                                                         \
    "muls r3, r7\n"                                                                                \
    "muls r4, r7\n"                                                                                \
    "muls r5, r7\n"                                                                                \
    "muls r6, r7\n"                                                                                \
    "add r8, r3\n"                                                                                 \
    "add r9, r4\n"                                                                                 \
    "add r10, r5\n"                                                                                \
    "add r11, r6\n"                                                                                \
    "adds r2, #1\n"
#define SAVE                                                                                       \
    "push {r4-r7, lr}\n"                                                                           \
    FRAME("20")                                                                                    \
    KEPT_R4_TO_R7("20", "16", "12", "8") KEPT("lr", "4")                                           \
    "mov r4, r8\n"                                                                                 \
    "mov r5, r9\n"                                                                                 \
    "mov r6, r10\n"                                                                                \
    "mov r7, r11\n"                                                                                \
    "push {r4-r7}\n"                                                                               \
    FRAME("36")                                                                                    \
    KEPT_R8_TO_R11("36", "32", "28", "24")
#define RESTORE                                                                                    \
    "mov r3, r12\n"                                                                                \
    "mov r4, r8\n"                                                                                 \
    "mov r5, r9\n"                                                                                 \
    "mov r6, r10\n"                                                                                \
    "mov r7, r11\n"                                                                                \
    "stmia r3!, {r4-r7}\n"                                                                         \
    "pop {r4-r7}\n"                                                                                \
    FRAME("20")                                                                                    \
    "mov r8, r4\n"                                                                                 \
    "mov r9, r5\n"                                                                                 \
    "mov r10, r6\n"                                                                                \
    "mov r11, r7\n"                                                                                \
    "pop {r4-r7, pc}\n"
#define FURTHER                                                                                    \
    "mov r12, r3\n"                                                                                \
    "ldr r3, [r3]\n"                                                                               \
    "mov r8, r3\n"                                                                                 \
    "mov r9, r3\n"                                                                                 \
    "mov r10, r3\n"                                                                                \
    "mov r11, r3\n"                                                                                \
    "adds r0, r0, r2\n"                                                                            \
    "negs r2, r2\n"                                                                                \
    "1:\n"                                                                                         \
    INPUTS(INPUT)                                                                                  \
    "bne 1b\n"
#define FIRST                                                                                      \
    "ldr r4, [sp, #36]\n"                                                                          \
    "mov r12, r4\n"                                                                                \
    "ldmia r4!, {r5, r6}\n"                                                                        \
    "mov r8, r5\n"                                                                                 \
    "mov r9, r6\n"                                                                                 \
    "mov r10, r5\n"                                                                                \
    "mov r11, r6\n"                                                                                \
    "adds r0, r0, r3\n"                                                                            \
    "adds r1, r1, r3\n"                                                                            \
    "negs r3, r3\n"                                                                                \
    "1:\n"                                                                                         \
    "ldmia r2!, {r4, r5}\n"                                                                        \
    "ldrsb r6, [r1, r3]\n"                                                                         \
    "movs r7, r4\n"                                                                                \
    "muls r7, r6\n"                                                                                \
    "add r8, r7\n"                                                                                 \
    "muls r6, r5\n"                                                                                \
    "add r10, r6\n"                                                                                \
    "ldrsb r6, [r0, r3]\n"                                                                         \
    "muls r4, r6\n"                                                                                \
    "add r9, r4\n"                                                                                 \
    "muls r5, r6\n"                                                                                \
    "add r11, r5\n"                                                                                \
    "adds r3, #1\n"                                                                                \
    "bne 1b\n"
#endif

__asm(".pushsection .text.twini_thumb_further, \"ax\", %progbits\n"
      ".syntax unified\n"
      FUNCTION("twini_thumb_further")
      SAVE
      FURTHER
      RESTORE
      END_OF("twini_thumb_further")
      ".section .text.twini_thumb_first, \"ax\", %progbits\n"
      FUNCTION("twini_thumb_first")
      SAVE
      FIRST
      RESTORE
      END_OF("twini_thumb_first")
      ".popsection");
/* clang-format on */

#if TWIN_SILU
/* Sums of output o to activations, by lines if z is on one. Not inlined, as registers would run
 * out. */
__attribute__((noinline)) static void thumb_silu(const twini_layer *layer, uint32_t o,
                                                 int32_t *sum) {
    const uint32_t *lines = layer->lines;
    int32_t multiplier = twini_i16(layer->multiplier + 2 * o), half = (1 << layer->shift) >> 1;
    unsigned width = layer->fraction - 5u, shift = layer->shift;
    uint32_t offset = 128u << width;
    int32_t *end = sum + COLUMNS; /* cppcheck-suppress ctuPointerArith ; one beyond the last */
    if (layer->fraction > 13 || !*lines) /* z would need clamping; no lines */
        offset = (uint32_t)1 << 31;
    do {
        int32_t z = (twini_mulw(*sum, multiplier) + half) >> shift;
        uint32_t k = ((uint32_t)z + offset) >> width;
        if (k < TWIN_LINES) {
            int32_t line = (int32_t)lines[k];
            *sum = ((int16_t)line * (1 << width) + (line >> 16) * z + 511) >> 10;
        } else {
            *sum = plain_activate(layer, *sum, multiplier);
        }
    } while (++sum != end);
}
#endif

static void thumb_finish_any(const twini_layer *layer, uint32_t o, int32_t *sum, void *out,
                             int32_t *totals) {
#if TWIN_SILU
    if (layer->silu) {
        thumb_silu(layer, o, sum);
        thumb_put(layer, o, sum, (int32_t *)out, totals);
        return;
    }
#endif
    thumb_finish(layer, o, sum, (int32_t *)out, totals);
}

static void thumb_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                        int32_t *totals) {
    const int32_t *partial = (const int32_t *)pairs->partial;
    int32_t *room = (int32_t *)pairs->room;
    twin_flash a = layer->weights, b = layer->mirror;
    uint32_t o, i;
    for (i = 0; i < layer->inputs; i++) {
        room[2 * i] = twini_i16(pairs->anchor[0] + 2 * i);
        room[2 * i + 1] = twini_i16(pairs->anchor[1] + 2 * i);
    }
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS];
        sum[0] = *partial++;
        sum[1] = *partial++;
        twini_thumb_first(a, b, room, layer->inputs, sum);
        thumb_finish_any(layer, o, sum, out, totals);
        a += layer->row;
        b += layer->row;
    }
    thumb_pad(layer, (int32_t *)out);
}

static void thumb_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    twin_flash row = layer->weights;
    uint32_t o;
    for (o = 0; o < layer->outputs; o++) {
        int32_t sum[COLUMNS];
        sum[0] = twini_i32(layer->bias + 4 * o);
        twini_thumb_further(row, in, layer->row, sum);
        thumb_finish_any(layer, o, sum, out, totals);
        row += layer->row;
    }
    thumb_pad(layer, (int32_t *)out);
}

TWIN_DEFINE(twini_kernel_thumb) = {
    PAIRS,         /* pairs */
    4,             /* unit */
    8,             /* align */
    8,             /* partial_bytes */
    4 * COLUMNS,   /* block_bytes */
    plain_query,   /* query */
    thumb_first,   /* first */
    thumb_further, /* further */
    4 * PAIRS,     /* room_bytes */
    1,             /* lines */
};

#endif
