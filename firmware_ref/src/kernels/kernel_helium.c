/* For Cortex-M with Helium, the vector extension (M55, M85): eight 16-bit multiply-adds per
 * instruction.
 *
 * A block is two pairs, four columns:
 *
 *     activations 0 .. 7 of columns 0 .. 3, activations 8 .. 15 of columns 0 .. 3, ...
 *
 * Two outputs are summed side by side, so that eight sums fill the registers that VMLADAVA can add
 * to. Eight outputs are finished at once, column by column. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_HELIUM

#include "../twin_arith.h"
#include "arm_frames.h"
#include <arm_mve.h>
#include <string.h>

#define PAIRS   2
#define COLUMNS (2 * PAIRS)

/* Outputs to sum up, in order. */
typedef struct helium_rows {
    twin_flash weights;
    uint32_t row;      /* bytes between rows; weights may be read in multiples of 8 */
    const void *seeds; /* bias; or partial sums, where the sums start from */
    uint32_t rounds;   /* of 16 inputs, or 8 features */
    const void *in;    /* activations; or features of two anchors, eight by eight in turn */
    int32_t *end;      /* end of the output */
    twin_flash mirror;
} helium_rows;

/* Sum up the columns of outputs; further ones two at a time. */
TWIN_ASSEMBLY void twini_helium_first(helium_rows *rows, int32_t *sums);
TWIN_ASSEMBLY void twini_helium_further(helium_rows *rows, int32_t *sums);

/* clang-format off */
#define COLUMN(first, second)                                                                      \
    "vldrh.u16 q2, [r5], #16\n"                                                                    \
    "vmladava.s16 " first ", q0, q2\n"                                                             \
    "vmladava.s16 " second ", q1, q2\n"
#define EIGHT                                                                                      \
    "vldrb.s16 q0, [r1], #8\n"                                                                     \
    "vldrb.s16 q1, [r3], #8\n"                                                                     \
    COLUMN("r0", "r8") COLUMN("r2", "r10") COLUMN("r4", "r12") COLUMN("r6", "lr")
__asm(".pushsection .text.twini_helium_further, \"ax\", %progbits\n"
      ".syntax unified\n"
      FUNCTION("twini_helium_further")
      "push {r4-r11, lr}\n"
      PUSHED_R4_TO_R11
      "mov r11, r0\n"
      "mov r9, r1\n"
      "1:\n"
      "ldmia r11, {r1, r3, r5, r7}\n"
      "add r0, r1, r3, lsl #1\n"
      "adds r3, r3, r1\n"
      "str r0, [r11]\n"
      "ldrd r0, r8, [r5], #8\n"
      "str r5, [r11, #8]\n"
      "ldr r5, [r11, #16]\n"
      "mov r2, r0\n"
      "mov r4, r0\n"
      "mov r6, r0\n"
      "mov r10, r8\n"
      "mov r12, r8\n"
      "mov lr, r8\n"
      "2:\n"
      EIGHT
      EIGHT
      "subs r7, r7, #1\n"
      "bne 2b\n"
      "stmia r9!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
      "ldr r0, [r11, #20]\n"
      "cmp r9, r0\n"
      "bne 1b\n"
      "pop {r4-r11, pc}\n"
      END_OF("twini_helium_further")

      ".section .text.twini_helium_first, \"ax\", %progbits\n"
      FUNCTION("twini_helium_first")
      "push {r4-r11, lr}\n"
      PUSHED_R4_TO_R11
      "mov r11, r0\n"
      "mov r9, r1\n"
      "ldmia r11, {r1, r7, r8, r10, r12, lr}\n"
      "ldr r3, [r11, #24]\n"
      "sub r7, r7, r10, lsl #3\n"
      "1:\n"
      "ldrd r0, r2, [r8], #8\n"
      "mov r5, r12\n"
      "mov r11, r10\n"
      "mov r4, r0\n"
      "mov r6, r2\n"
      "2:\n"
      "vldrb.s16 q0, [r1], #8\n"
      "vldrb.s16 q1, [r3], #8\n"
      "vldrh.u16 q2, [r5], #16\n"
      "vldrh.u16 q3, [r5], #16\n"
      "vmladava.s16 r0, q1, q2\n"
      "vmladava.s16 r2, q0, q2\n"
      "vmladava.s16 r4, q1, q3\n"
      "vmladava.s16 r6, q0, q3\n"
      "subs r11, r11, #1\n"
      "bne 2b\n"
      "stmia r9!, {r0, r2, r4, r6}\n"
      "add r1, r1, r7\n"
      "add r3, r3, r7\n"
      "cmp r9, lr\n"
      "bne 1b\n"
      "pop {r4-r11, pc}\n"
      END_OF("twini_helium_first")
      ".popsection");
/* clang-format on */

/* Sums of eight outputs. */
typedef int32_t helium_sums[8][COLUMNS];

/* Columns that were folded, with the weights of the output and then of the second one, whose
 * columns (query, anchor) are unused. */
#if TWIN_INTERVALS
#define FOLDED (2 * COLUMNS)
#else
#define FOLDED COLUMNS
#endif

/* Weights that the eight outputs from o on are folded with; zero beyond the last. */
static inline int16x8_t helium_weights(const twini_layer *layer, uint32_t o, int16x8_t *hard) {
    mve_pred16_t there = vctp16q(layer->outputs - o);
    const int16_t *fold = (const int16_t *)(const void *)layer->fold;
#if TWIN_INTERVALS
    if (layer->scaled) {
        uint16x8_t even = vidupq_n_u16(0, 2);
        fold += 2 * o + 2;
        *hard = vldrhq_gather_shifted_offset_z_s16(fold + 1, even, there);
        return vldrhq_gather_shifted_offset_z_s16(fold, even, there);
    }
#endif
    (void)hard;
    return vldrhq_z_s16(fold + o, there);
}

#if TWIN_SILU
#include "helium_silu.h"
#endif

/* Sums of the outputs from o on to activations: stored, or folded column by column. `silu` is known
 * at compile time, so that registers last for relu. */
static inline __attribute__((always_inline)) void helium_columns(const twini_layer *layer,
                                                                 uint32_t o, helium_sums sum,
                                                                 int16_t *out, int32_t *folded,
                                                                 unsigned silu) {
    const uint32x4_t rows = vidupq_n_u32(0, 8);
    mve_pred16_t there = vctp16q(layer->outputs - o);
    int16x8_t factor = vldrhq_z_s16((const int16_t *)(const void *)layer->multiplier + o, there);
    int16x8_t fold = factor, hard = factor; /* any value */
    int32x4_t even = vshllbq_n_s16(factor, 16), odd = vshlltq_n_s16(factor, 16);
    int32_t down = -(int32_t)layer->shift;
    unsigned c;
#if TWIN_SILU
    const int16_t *curve = (const int16_t *)(const void *)layer->curve;
    uint16_t narrow = (uint16_t)(layer->fraction < 13 ? (4 << layer->fraction) - 1 : 32767);
    int16_t width = (int16_t)(layer->fraction - 20);
#else
    (void)silu;
#endif
    if (folded)
        fold = helium_weights(layer, o, &hard);
    else
        out += 4 * o;
    for (c = 0; c < COLUMNS; c++) {
        int32x4_t low = vldrwq_gather_shifted_offset_s32(&sum[0][c], rows);
        int32x4_t high = vldrwq_gather_shifted_offset_s32(&sum[1][c], rows);
        int16x8_t z = vqmovnbq_s32(factor, vrshlq_n_s32(vmulhq_s32(low, even), down)), h;
        z = vqmovntq_s32(z, vrshlq_n_s32(vmulhq_s32(high, odd), down));
        h = vmaxq_s16(z, vdupq_n_s16(0));
#if TWIN_SILU
        if (silu)
            h = vsubq_s16(h, helium_bump(curve, vqabsq_s16(z), width, narrow));
#endif
        if (folded) {
            *folded = vmladavaq_s16(*folded, fold, h);
#if TWIN_INTERVALS
            if (c & 1)
                folded[COLUMNS] = vmladavaq_s16(folded[COLUMNS], hard, h);
#endif
            folded++;
        } else {
            vst1q_s16(out, vpselq_s16(h, vdupq_n_s16(0), there));
            out += 8;
        }
    }
}

static void helium_relu(const twini_layer *layer, uint32_t o, helium_sums sum, int16_t *out,
                        int32_t *folded) {
    helium_columns(layer, o, sum, out, folded, 0);
}

#if TWIN_SILU
static void helium_silu(const twini_layer *layer, uint32_t o, helium_sums sum, int16_t *out,
                        int32_t *folded) {
    helium_columns(layer, o, sum, out, folded, 1);
}
#endif

/* Folded columns to differences; or zeros after what was stored. */
static void helium_end(const twini_layer *layer, int16_t *out, const int32_t *folded,
                       int32_t *totals) {
    if (out) {
        uint32_t o;
        for (o = (layer->outputs + 7u) / 8; o % 2; o++)
            memset(out + 8 * COLUMNS * o, 0, 16 * COLUMNS);
    } else {
#if TWIN_INTERVALS
        if (layer->scaled) {
            totals[0] += folded[0];
            totals[1] += folded[2];
            totals[TWIN_BLOCK] += folded[1];
            totals[TWIN_BLOCK + 1] += folded[3];
            totals[2 * TWIN_BLOCK] += folded[COLUMNS + 1];
            totals[2 * TWIN_BLOCK + 1] += folded[COLUMNS + 3];
            return;
        }
#endif
        totals[0] += folded[0] - folded[1];
        totals[1] += folded[2] - folded[3];
    }
}

static void helium_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                         int32_t *totals) {
    int16_t *room = (int16_t *)pairs->room;
    uint32_t o, i, inputs = layer->inputs;
    int32_t folded[FOLDED] = {0};
    helium_sums sums;
    helium_rows rows;
#if TWIN_SILU
    helium_lines lines;
    helium_set_lines(&lines, layer, sums[0], out ? 0 : folded);
#endif
    for (i = 0; i < inputs; i += 8) {
        mve_pred16_t there = vctp16q(inputs - i);
        vst1q_s16(room + 2 * i, vldrhq_z_s16((const int16_t *)pairs->anchor[0] + i, there));
        vst1q_s16(room + 2 * i + 8, vldrhq_z_s16((const int16_t *)pairs->anchor[1] + i, there));
    }
    rows.row = layer->row;
    rows.rounds = (inputs + 7) / 8;
    rows.in = room;
    for (o = 0; o < layer->outputs; o += 8) {
        uint32_t left = layer->outputs - o;
        rows.weights = layer->weights + o * layer->row;
        rows.mirror = layer->mirror + o * layer->row;
        rows.seeds = (const int32_t *)pairs->partial + 2 * o;
        rows.end = sums[0] + COLUMNS * (left < 8 ? left : 8);
        twini_helium_first(&rows, sums[0]);
#if TWIN_SILU
        if (layer->silu) {
            if (!helium_on_lines(&lines, layer, o, (int16_t *)out))
                helium_silu(layer, o, sums, (int16_t *)out, out ? 0 : folded);
            continue;
        }
#endif
        helium_relu(layer, o, sums, (int16_t *)out, out ? 0 : folded);
    }
    helium_end(layer, (int16_t *)out, folded, totals);
}

static void helium_further(const twini_layer *layer, const void *in, void *out, int32_t *totals) {
    uint32_t o;
    int32_t folded[FOLDED] = {0};
    helium_sums sums;
    helium_rows rows;
#if TWIN_SILU
    helium_lines lines;
    helium_set_lines(&lines, layer, sums[0], out ? 0 : folded);
#endif
    rows.weights = layer->weights;
    rows.seeds = layer->bias;
    rows.rounds = (layer->inputs + 15u) / 16;
    rows.in = in;
    for (o = 0; o < layer->outputs; o += 8) {
        uint32_t left = layer->outputs - o;
        rows.row = layer->row;
        rows.end = sums[0] + COLUMNS * (left < 8 ? left & ~1u : 8);
        if (left > 1)
            twini_helium_further(&rows, sums[0]);
        if (left < 8 && left % 2) { /* the last one twice, as there may be nothing after it */
            int32_t *last = rows.end;
            rows.row = 0;
            rows.end += 2 * COLUMNS;
            twini_helium_further(&rows, last);
        }
#if TWIN_SILU
        if (layer->silu) {
            if (!helium_on_lines(&lines, layer, o, (int16_t *)out))
                helium_silu(layer, o, sums, (int16_t *)out, out ? 0 : folded);
            continue;
        }
#endif
        helium_relu(layer, o, sums, (int16_t *)out, out ? 0 : folded);
    }
    helium_end(layer, (int16_t *)out, folded, totals);
}

#if TWIN_TARGETS > 1
static void helium_fold(const twini_layer *layer, int32_t *totals) {
    const int16_t *block = (const int16_t *)layer->block;
    int32_t folded[FOLDED] = {0};
    uint32_t o;
    unsigned c;
    for (o = 0; o < layer->outputs; o += 8) {
        int16x8_t hard = vdupq_n_s16(0), fold = helium_weights(layer, o, &hard);
        for (c = 0; c < COLUMNS; c++, block += 8) {
            int16x8_t h = vld1q_s16(block);
            folded[c] = vmladavaq_s16(folded[c], fold, h);
#if TWIN_INTERVALS
            if (c & 1)
                folded[COLUMNS + c] = vmladavaq_s16(folded[COLUMNS + c], hard, h);
#endif
        }
    }
    helium_end(layer, 0, folded, totals);
}
#endif

#define NAME(word) helium_##word
#define FIRST      helium_first
#define FURTHER    helium_further

#include "fold_later.h"

static void helium_query(const twini_layer *layer, const int16_t *query, void *partial) {
    const int8_t *a = (const int8_t *)layer->weights, *b = (const int8_t *)layer->mirror;
    int32_t *sum = (int32_t *)partial;
    uint32_t o, i;
    for (o = 0; o < layer->outputs; o++) {
        int32_t of_a = twini_i32(layer->bias + 4 * o), of_b = of_a;
        for (i = 0; i < layer->inputs; i += 8) {
            int16x8_t x = vldrhq_z_s16(query + i, vctp16q(layer->inputs - i));
            of_a = vmladavaq_s16(of_a, vldrbq_s16(a + i), x);
            of_b = vmladavaq_s16(of_b, vldrbq_s16(b + i), x);
        }
        *sum++ = of_a;
        *sum++ = of_b;
        a += layer->row;
        b += layer->row;
    }
}

TWIN_DEFINE(twini_kernel_helium) = {
    PAIRS,        /* pairs */
    16,           /* unit */
    8,            /* align */
    8,            /* partial_bytes */
    2 * COLUMNS,  /* block_bytes */
    helium_query, /* query */
    ANY_FIRST,    /* first */
    ANY_FURTHER,  /* further */
    4 * PAIRS,    /* room_bytes: eights of features may be twice as many as fours */
    1,            /* lines */
};

#endif
