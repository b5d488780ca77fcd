/* For Cortex-M with the DSP extension (M4, M7, M33): two 16-bit multiply-adds per instruction.
 *
 * A block is two pairs, four columns. Four activations of a column are two words, (0, 2) and
 * (1, 3), as SXTB16 unpacks four weights:
 *
 *     0 and 2 of columns 0 .. 3, 1 and 3 of columns 0 .. 3, 4 and 6 of columns 0 .. 3, ...
 *
 * so that one load of four words feeds four SMLAD. It is all assembly, as compilers run out of
 * registers here. Weights have 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_DSP

#include "../twin_read.h"
#include "arm_frames.h"
#include "dsp_parts.h"
#include "dsp_silu.h"
#include <stddef.h>

#define PAIRS 2

TWIN_ASSEMBLY void twini_dsp_query(const twini_layer *layer, const int16_t *query, void *partial);
TWIN_ASSEMBLY void twini_dsp_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                                   int32_t *totals);
TWIN_ASSEMBLY void twini_dsp_further(const twini_layer *layer, const void *in, void *out,
                                     int32_t *totals);

/* There are loops that add up the columns of an output in r0 .. r3, and ways to finish an output.
 * The choice is made once per layer; a loop ends by loading what is on the stack, from the lowest
 * address on:
 *
 *     r4        256 times the outputs left to do, and `up`: multipliers shifted left by this are
 *               fractions of 2^32
 *     r5, r6    multiplier and place of the next output; `place` may be the weight to fold with
 *     r7, r8    differences; where outputs are stored, steps of `place`: four signed bytes
 *     r9        where the next output's sums start from
 *     r10, r11  rounds of the loop, and its input
 *     finish    how outputs are finished
 *     loop      where an output begins
 *     detour    where to enter the loop over inputs, if not at its start
 *     behind    where to continue once sums are requantised in a different way
 *     seed      sums may start from what is there, after adding multiplier * 2 or * 4
 *     mirror    where it has to be kept
 *     (silu)    what dsp_silu.h says */
#define FINISH "ldmia sp, {r4-r11, pc}\n"
#define INPUT  "#24"
#define LOOP   "#36"
#define DETOUR "#40"
#define BEHIND "#44"
#define SEED   "#48"
#define MIRROR "#52"
#if TWIN_SILU
#define STATE_BYTES "84"
#else
#define STATE_BYTES "56"
#endif
#define STATE "#" STATE_BYTES

/* push {r3-r11, lr} */
#define PUSHED_R3_TO_R11 PUSHED_R4_TO_R11 FRAME("40")

/* Fields of twini_layer. */
#define WEIGHTS      "#0"
#define BIAS         "#8"
#define MULTIPLIER   "#12"
#define CURVE        "#16"
#define FOLD_WEIGHTS "#20"
#define OUTPUTS      "#26"
#define ROW          "#28"
#define SHIFT        "#30"
#define FRACTION     "#31"
#define IS_SILU      "#33"
#define IS_SCALED    "#34"
#define LINES        "#36"
typedef char dsp_knows_layers[offsetof(twini_layer, fold) == 20 &&
                                      offsetof(twini_layer, shift) == 30 &&
                                      offsetof(twini_layer, silu) == 33
                                  ? 1
                                  : -1];
#if TWIN_INTERVALS
typedef char dsp_knows_scaled[offsetof(twini_layer, scaled) == 34 ? 1 : -1];
#endif
#if TWIN_SILU
typedef char dsp_knows_lines[offsetof(twini_layer, lines) == 36 ? 1 : -1];
#endif
typedef char dsp_knows_pairs[offsetof(twini_pairs, room) == 8 && offsetof(twini_pairs, anchor) == 12
                                 ? 1
                                 : -1];

/* clang-format off */
__asm(".pushsection .text.twini_dsp, \"ax\", %progbits\n"
      ".syntax unified\n"
      ".balign 4\n"
      ARRANGE
      QUERY

      FUNCTION("twini_dsp_further")
      "push {r3-r11, lr}\n"
      PUSHED_R3_TO_R11
      "ldrd r9, r5, [r0, " BIAS "]\n"
      "ldrh r10, [r0, " ROW "]\n"
      "mov r11, r1\n"
      "sub r3, r9, r5, lsl #1\n"
      "adr r1, .Ldsp_turns\n"
      "lsr r10, r10, #2\n"
      "rsb r6, r10, #0\n"
      "ands r6, r6, #2 * " TURNS " - 1\n"
      "ldrh r7, [r1, r6, lsl #1]\n"
      "add r1, r1, r7\n"
      "add r10, r10, r6\n"
      "lsr r10, r10, #" TURN_BITS "\n"
      "adr r12, .Ldsp_fold + 1\n"
      "adr lr, .Ldsp_further + 1\n"
      "cbz r6, 1f\n"
      "adr lr, .Ldsp_detour + 1\n"
      "1:\n"
      "cbz r2, .Ldsp_layer\n"
      "mov r9, r2\n" /* a place to walk over */
      "adr lr, .Ldsp_seed + 1\n"
      "b .Ldsp_layer\n"
      END_OF("twini_dsp_further")

      FUNCTION("twini_dsp_first")
      "push {r3-r11, lr}\n"
      PUSHED_R3_TO_R11
      "ldm r1, {r5-r9}\n"
      "ldrh r10, [r0, " ROW "]\n"
      "lsr r3, r10, #2\n"
      "mov r11, r7\n"
      "bl .Ldsp_arrange\n"
      "mov r11, r7\n"
      "mov r9, r6\n"
      "subs r10, r3, #1\n"
      "adr r1, .Ldsp_first + 1\n"
      "bne 1f\n"
      "mov r10, #1\n"
      "adr r1, .Ldsp_first_four + 1\n"
      "1:\n"
      "ldr r5, [r0, " MULTIPLIER "]\n"
      "sub r3, r9, r5, lsl #2\n"
      "adr r12, .Ldsp_fold_first + 1\n"
      "adr lr, .Ldsp_first_folded + 1\n"
      "cbz r2, .Ldsp_layer\n"
      "mov lr, r1\n"

      /* r0 layer, r1 detour, r2 out, r3 seed, r5, r9 .. r11 as above, r12 finish where outputs are
       * folded, lr loop */
      ".Ldsp_layer:\n"
#if TWIN_SILU
      "ldrb r4, [r0, " IS_SILU "]\n"
      "cmp r4, #0\n"
      "bne .Ldsp_layer_of_silu\n"
      "sub sp, #28\n"
      FRAME("68")
#endif
      ".Ldsp_activation:\n"
      "cbz r2, 1f\n"
      "mov r6, r2\n"
      "ldr r7, .Ldsp_steps\n"
      "adr r12, .Ldsp_store + 1\n"
      "adr r2, .Ldsp_store_behind + 1\n"
#if TWIN_INTERVALS
      "add r4, r2, #32\n" /* to the seed of the first output: over RELU STORE */
#endif
      "b 2f\n"
      "1:\n"
      "adr r2, .Ldsp_fold_behind + 1\n"
#if TWIN_INTERVALS
      "add r4, r2, #32\n" /* and over RELU FOLD */
      "ldrb r6, [r0, " IS_SCALED "]\n"
      "cbz r6, 3f\n"
      "adr r2, .Ldsp_both_behind + 1\n"
      "3:\n"
#endif
      "ldr r6, [r0, " FOLD_WEIGHTS "]\n"
      "ldr r7, [sp, " STATE " - 56]\n"
      "ldrd r7, r8, [r7]\n"
      "2:\n"
#if !TWIN_INTERVALS
      "add r4, r2, #32\n" /* to the seed of the first output: over RELU, and FOLD or STORE */
#endif
      "push {r1-r4}\n"
      FRAME(STATE_BYTES)
      "ldrb r4, [r0, " SHIFT "]\n"
      "ldrh r3, [r0, " OUTPUTS "]\n"
      "rsb r1, r4, #16\n"
#if TWIN_SILU
      "ldrb r2, [r0, " IS_SILU "]\n"
      "cmp r2, #0\n"
      "bne .Ldsp_finish_of_silu\n"
#endif
      ".Ldsp_finish:\n"
      "cmp r1, #15\n"
      "ite hi\n"
      "adrhi r12, .Ldsp_any + 1\n"
      "movls r4, r1\n"
      "orr r4, r4, r3, lsl #8\n"
      "push {r4-r12, lr}\n"
      FRAME("40 + " STATE_BYTES)
      "ldr r2, [sp, " MIRROR "]\n"
      "ldrd r12, lr, [r0, " WEIGHTS "]\n"
      "str lr, [sp, " MIRROR "]\n"
      "bx r2\n"

      /* Zeros up to a multiple of four, after which the steps are back where they began. */
      "1:\n"
      "movs r0, #0\n"
      "movs r1, #0\n"
      "movs r2, #0\n"
      "movs r3, #0\n"
      "movs r4, #0\n"
      "b .Ldsp_store_behind\n"
      ".Ldsp_stored:\n"
      "lsrs r0, r7, #24\n"
      "cmp r0, #14\n"
      "bne 1b\n"
      ".Ldsp_return:\n"
      "add sp, " STATE "\n"
      FRAME("40")
      "pop {r3-r11, pc}\n"
      FRAME("40 + " STATE_BYTES)
      ".Ldsp_folded:\n"
      "ldr r0, [sp, " STATE "]\n"
      "strd r7, r8, [r0]\n"
      "b .Ldsp_return\n"

      ".balign 4\n"
      ".Ldsp_steps: .word 0x0E10F210\n" /* 16, -14, 16, 14 */
      ".Ldsp_turns:\n"
      EACH_TURN(TURN_PLACES)

      ".Ldsp_first_folded:\n"
      "ldrd r9, lr, [sp, " SEED "]\n"
      "add r9, r9, r5, lsl #2\n"
      "ldrd r0, r1, [r9]\n"
      "ldr pc, [sp, " DETOUR "]\n"
      ".Ldsp_first_four:\n"
      "mov r2, r0\n"
      "mov r3, r1\n"
      "b .Ldsp_features\n"
      ".Ldsp_first:\n"
      FEATURES_FROM("r0", "r1")
      ".Ldsp_features:\n"
      FEATURES
      "subs r10, r10, #1\n"
      "bne .Ldsp_features\n"
      FINISH

      EACH_TURN(TURN_ODD)
      ".Ldsp_seed:\n"
      "ldr r0, [sp, " SEED "]\n"
      "ldr r0, [r0, r5, lsl #1]\n"
      ".Ldsp_detour:\n"
      SEEDS
      "ldr pc, [sp, " DETOUR "]\n"
      ".Ldsp_further:\n"
      FIRST_EIGHT
      EACH_TURN(TURN)
      "subs r10, r10, #1\n"
      "bne .Ldsp_turn0\n"
      FINISH

      ".Ldsp_fold_first:\n"
      "str lr, [sp, " MIRROR "]\n"
      ".Ldsp_fold:\n"
      REQUANTISE("lr")
#if TWIN_INTERVALS
      "ldr pc, [sp, " BEHIND "]\n"
#endif
      ".Ldsp_fold_behind:\n"
      RELU SUBTRACT FOLD
      ".Ldsp_fold_next:\n"
      NEXT_FOLDED
#if TWIN_INTERVALS
      ".Ldsp_both_behind:\n"
      RELU
      ".Ldsp_fold_both:\n"
      FOLD_BOTH
      "b .Ldsp_fold_next\n"
#endif
      ".Ldsp_store:\n"
      REQUANTISE("r8")
      ".Ldsp_store_behind:\n"
      RELU STORE
      NEXT_STORED

      /* Shifts for which a multiplier is not a fraction of 2^32, or does not round. And silu
       * whose z would have to be clamped even where its curve has narrow steps. */
      ".Ldsp_any:\n"
      "str lr, [sp, " MIRROR "]\n"
      "ldrsh r10, [r5], #2\n"
      "mov r11, #1\n"
      "lsl r11, r11, r4\n"
      "lsr r11, r11, #1\n"
      ANY("r0") ANY("r1") ANY("r2") ANY("r3")
      "ldrd r10, r11, [sp, " INPUT "]\n"
      "ldr pc, [sp, " BEHIND "]\n"
#if TWIN_SILU
      SILU_CHOOSE

      "str lr, [sp, " MIRROR "]\n"
      ".Ldsp_silu_fold:\n"
      SILU("_fold") SILU_SUBTRACT FOLD NEXT_FOLDED
#if TWIN_INTERVALS
      "str lr, [sp, " MIRROR "]\n"
      ".Ldsp_silu_both:\n"
      SILU("_both") SILU_SHIFT
      "b .Ldsp_fold_both\n"
      SILU_APART("_both")
#endif
      ".Ldsp_silu_store:\n"
      SILU("_store") SILU_SHIFT STORE NEXT_STORED
      SILU_APART("_fold") SILU_APART("_store")
      SILU_ELSEWHERE
#endif
      END_OF("twini_dsp_first")
      ".popsection");
/* clang-format on */

#if TWIN_TARGETS > 1
/* Activations of a stored layer, `fours` times four neurons, times their weights: sums of all four
 * columns; and in a scaled network those of the second output for columns 1 and 3, after them. */
TWIN_ASSEMBLY void twini_dsp_fold(const void *block, twin_flash weights, uint32_t fours,
                                  int32_t *sums);
#if TWIN_INTERVALS
TWIN_ASSEMBLY void twini_dsp_fold_both(const void *block, twin_flash weights, const void *end,
                                       int32_t *sums);
#endif

/* clang-format off */
#define ALL_FOUR(weights)                                                                          \
    "ldmia r0!, {r8, r10, r11, r12}\n"                                                             \
    "smlad r4, r8, " weights ", r4\n"                                                              \
    "smlad r5, r10, " weights ", r5\n"                                                             \
    "smlad r6, r11, " weights ", r6\n"                                                             \
    "smlad r7, r12, " weights ", r7\n"
#define A_PAIR(there, back, second, weights, hard)                                                 \
    "ldrd r9, lr, [r0], #8\n"                                                                      \
    "smlad " there ", r9, " weights ", " there "\n"                                                \
    "smlad " back ", lr, " weights ", " back "\n"                                                  \
    "smlad " second ", lr, " hard ", " second "\n"
__asm(".pushsection .text.twini_dsp_fold, \"ax\", %progbits\n"
      ".syntax unified\n"
      FUNCTION("twini_dsp_fold")
      "push {r4-r11, lr}\n"
      PUSHED_R4_TO_R11
      "ldmia r3, {r4-r7}\n"
      "1:\n"
      "ldrd r8, r9, [r1], #8\n"
      "pkhbt lr, r8, r9, lsl #16\n"
      "pkhtb r9, r9, r8, asr #16\n"
      ALL_FOUR("lr")
      ALL_FOUR("r9")
      "subs r2, r2, #1\n"
      "bne 1b\n"
      "stmia r3, {r4-r7}\n"
      "pop {r4-r11, pc}\n"
      END_OF("twini_dsp_fold")
#if TWIN_INTERVALS
      ".section .text.twini_dsp_fold_both, \"ax\", %progbits\n"
      FUNCTION("twini_dsp_fold_both")
      "push {r4-r11, lr}\n"
      PUSHED_R4_TO_R11
      "push {r2, r3}\n"
      FRAME("44")
      "ldmia r3, {r2-r7}\n"
      "1:\n"
      "ldmia r1!, {r8-r11}\n"
      "pkhbt r12, r8, r10, lsl #16\n"
      "pkhtb r10, r10, r8, asr #16\n"
      "pkhbt r8, r9, r11, lsl #16\n"
      "pkhtb r11, r11, r9, asr #16\n"
      A_PAIR("r2", "r3", "r6", "r12", "r10")
      A_PAIR("r4", "r5", "r7", "r12", "r10")
      "ldr r12, [sp]\n"
      A_PAIR("r2", "r3", "r6", "r8", "r11")
      A_PAIR("r4", "r5", "r7", "r8", "r11")
      "cmp r0, r12\n"
      "bne 1b\n"
      "ldr r12, [sp, #4]\n"
      "stmia r12, {r2-r7}\n"
      "add sp, #8\n"
      FRAME("36")
      "pop {r4-r11, pc}\n"
      END_OF("twini_dsp_fold_both")
#endif
      ".popsection");
/* clang-format on */

/* Columns are added up separately, since a difference of activations may have 17 bits. */
static void dsp_fold(const twini_layer *layer, int32_t *totals) {
    uint32_t fours = (layer->outputs + 3u) / 4;
    int32_t sums[6] = {0, 0, 0, 0, 0, 0};
#if TWIN_INTERVALS
    if (layer->scaled) {
        const uint8_t *block = (const uint8_t *)layer->block;
        twini_dsp_fold_both(block, layer->fold + 4, block + 32 * fours, sums);
        totals[0] += sums[0];
        totals[1] += sums[2];
        totals[TWIN_BLOCK] += sums[1];
        totals[TWIN_BLOCK + 1] += sums[3];
        totals[2 * TWIN_BLOCK] += sums[4];
        totals[2 * TWIN_BLOCK + 1] += sums[5];
        return;
    }
#endif
    twini_dsp_fold(layer->block, layer->fold, fours, sums);
    totals[0] += sums[0] - sums[1];
    totals[1] += sums[2] - sums[3];
}
#endif

#define NAME(word) dsp_##word
#define FIRST      twini_dsp_first
#define FURTHER    twini_dsp_further

#include "fold_later.h"

TWIN_DEFINE(twini_kernel_dsp) = {
    PAIRS,           /* pairs */
    4,               /* unit */
    8,               /* align */
    8,               /* partial_bytes */
    4 * PAIRS,       /* block_bytes */
    twini_dsp_query, /* query */
    ANY_FIRST,       /* first */
    ANY_FURTHER,     /* further */
    2 * PAIRS,       /* room_bytes */
    1,               /* lines */
};

#endif
