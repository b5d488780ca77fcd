/* For Cortex-M with the DSP extension (M4, M7, M33): two multiply-adds of 16 bits an instruction.
 *
 * A block is two pairs, four columns. Four activations of a column are two words, (0, 2) and
 * (1, 3), as SXTB16 unpacks four weights:
 *
 *     0 and 2 of columns 0 .. 3, 1 and 3 of columns 0 .. 3, 4 and 6 of columns 0 .. 3, ...
 *
 * so that one load of four words feeds four SMLAD. The outputs of a layer are evaluated by one
 * piece of assembly, as compilers run out of registers here. Weights are 8-bit ones. */

#include "../twin_kernel.h"

#if TWIN_KERNEL_DSP

#include "../twin_read.h"
#include <stddef.h>

#define PAIRS 2

/* The outputs of a layer, stored in `out` or folded into `difference`. `in` are activations as
 * above, or the features of two anchors: two words of one, two of the other, in turn. */
void twin_dsp_further(const twin_layer *layer, const void *in, void *out, int32_t *difference);
void twin_dsp_first(const twin_layer *layer, const void *in, void *out, int32_t *difference,
                    const void *partial);

/* The query's share in the first layer. It is the first of the anchors, the other may be anything.
 */
void twin_dsp_query(const twin_layer *layer, const void *in, void *partial);

/* There are loops that sum up the columns of an output in r0 .. r3, and ways to finish an output.
 * Which ones is settled once for a layer; each leads to the other by loading the program counter
 * together with what is needed next. On the stack, from the lowest address:
 *
 *     job       address of `up`
 *     finish    how outputs are finished
 *     detour    where to enter the loop over inputs, if not at its start
 *     behind    where to go on once sums are requantised in another way
 *     (silu)    width, curve, mask, 65535, step, half: steps of the curve are 2^width
 *     up        multipliers shifted left by this are fractions of 2^32
 *     multiplier, out    of the next output; `out` may be the weights to fold with
 *     even, odd          differences; where outputs are stored, steps of `out`: four signed bytes
 *     outputs            left to do
 *     seed      sums start with what lies there, once multiplier * 2 or * 4 is added
 *     rounds    of the loop
 *     in
 *     loop      where an output begins */

/* Four columns with half of four weights, `to`. */
#define HALF(to, from) HALF_FROM(to, from, "r1", "r2", "r3")
#define HALF_FROM(to, from, first, second, third)                                                  \
    "ldmia.w r11!, {r4-r7}\n"                                                                      \
    "sxtb16 " to ", " from "\n"                                                                    \
    "smlad r3, " to ", r7, " third "\n"                                                            \
    "smlad r2, " to ", r6, " second "\n"                                                           \
    "smlad r1, " to ", r5, " first "\n"                                                            \
    "smlad r0, " to ", r4, r0\n"
/* A turn is eight inputs. It may be entered in the middle, for the last four. */
#define LOAD_EIGHT "ldrd r8, r9, [r12], #8\n"
#define TURN(n)                                                                                    \
    ".Ldsp_turn" n ":\n" LOAD_EIGHT HALF("lr", "r8") ".Ldsp_rest" n ":\n" HALF(                    \
        "r8", "r8, ror #8") ".Ldsp_middle" n ":\n" HALF("lr", "r9") HALF("r9", "r9, ror #8")
#define TURN_ODD(n)                                                                                \
    ".Ldsp_odd" n ":\n"                                                                            \
    "ldr r9, [r12], #4\n"                                                                          \
    "b .Ldsp_middle" n "\n"
#define TURN_PLACES(n)                                                                             \
    ".hword .Ldsp_turn" n " - .Ldsp_turns + 1, .Ldsp_odd" n " - .Ldsp_turns + 1\n"
#define SEED "ldr r0, [r9, r5, lsl #1]\n"
#define SEEDS                                                                                      \
    SEED "mov r1, r0\n"                                                                            \
         "mov r2, r0\n"                                                                            \
         "mov r3, r0\n"

/* Four features of both anchors, with A and with B. */
#define FEATURES FEATURES_FROM("r2", "r3")
#define FEATURES_FROM(second, third)                                                               \
    "ldmia r11!, {r4-r7}\n"                                                                        \
    "ldr r8, [r12], #4\n"                                                                          \
    "sxtb16 r9, r8\n"                                                                              \
    "smlad r3, r9, r6, " third "\n"                                                                \
    "smlad r1, r9, r4, r1\n"                                                                       \
    "sxtb16 r8, r8, ror #8\n"                                                                      \
    "smlad r3, r8, r7, r3\n"                                                                       \
    "smlad r1, r8, r5, r1\n"                                                                       \
    "ldr r8, [lr], #4\n"                                                                           \
    "sxtb16 r9, r8\n"                                                                              \
    "smlad r2, r9, r6, " second "\n"                                                               \
    "smlad r0, r9, r4, r0\n"                                                                       \
    "sxtb16 r8, r8, ror #8\n"                                                                      \
    "smlad r2, r8, r7, r2\n"                                                                       \
    "smlad r0, r8, r5, r0\n"
#define FEATURE_SEED                                                                               \
    "add r9, r9, r5, lsl #2\n"                                                                     \
    "ldrd r0, r1, [r9]\n"
#define NEXT_FEATURES                                                                              \
    "subs r10, r10, #1\n"                                                                          \
    "bne .Ldsp_features\n" FINISH

/* Small where size counts, but not for silu, which is large anyway. */
#if defined(__OPTIMIZE_SIZE__) && !TWIN_SILU
#define TURNS           "2"
#define EACH_TURN(what) what("0") what("1")
#define BEGIN_FURTHER   SEEDS
#define BEGIN_FIRST                                                                                \
    FEATURE_SEED "mov r2, r0\n"                                                                    \
                 "mov r3, r1\n"
#else
#define TURNS           "4"
#define EACH_TURN(what) what("0") what("1") what("2") what("3")
#define BEGIN_FURTHER   SEED LOAD_EIGHT HALF_FROM("lr", "r8", "r0", "r0", "r0") "b .Ldsp_rest0\n"
#define BEGIN_FIRST     FEATURE_SEED FEATURES_FROM("r0", "r1") NEXT_FEATURES
#endif

#define FINISH "ldmia sp, {r11, pc}\n"
#define LOOP   "ldmia r11, {r9, r10, r11, pc}\n"
#define STATE                                                                                      \
    "ldmia r11, {r4-r9}\n"                                                                         \
    "ldrsh r10, [r5], #2\n"
/* Sums to z: products of 64 bits, rounded to their upper half, are what FORMAT.md says. */
#define REQUANTISE                                                                                 \
    "lsl r10, r10, r4\n"                                                                           \
    "smmulr r0, r0, r10\n"                                                                         \
    "smmulr r1, r1, r10\n"                                                                         \
    "smmulr r2, r2, r10\n"                                                                         \
    "smmulr r3, r3, r10\n"
#define BEHIND "28" /* bytes of both, and of SILU_STATE */
#define RELU                                                                                       \
    "usat r0, #15, r0\n"                                                                           \
    "usat r1, #15, r1\n"                                                                           \
    "usat r2, #15, r2\n"                                                                           \
    "usat r3, #15, r3\n"
#define NEXT                                                                                       \
    "subs r9, r9, #1\n"                                                                            \
    "stmia r11!, {r4-r9}\n"
#define FOLD                                                                                       \
    "ldrsh r10, [r6], #2\n"                                                                        \
    "subs r0, r0, r1\n"                                                                            \
    "subs r2, r2, r3\n"                                                                            \
    "mla r7, r0, r10, r7\n"                                                                        \
    "mla r8, r2, r10, r8\n" NEXT "beq .Ldsp_folded\n" LOOP
#define STORE_AND_STEP                                                                             \
    "strh r0, [r6]\n"                                                                              \
    "strh r1, [r6, #4]\n"                                                                          \
    "strh r2, [r6, #8]\n"                                                                          \
    "strh r3, [r6, #12]\n"                                                                         \
    "sxtab r6, r6, r7\n"                                                                           \
    "ror r7, r7, #8\n"
#define STORE STORE_AND_STEP NEXT "beq .Ldsp_stored\n" LOOP

/* z to max(z, 0) less the bump. Where the curve has its wider steps, or z is to be limited, k is
 * beyond 127. The interpolation is one SMLAD: of two entries with (2^width - r, r). */
#define SILU_STATE                                                                                 \
    "ldrd r4, r5, [r11]\n"                                                                         \
    "ldrsh r10, [r5]\n"
#define SILU(z, n)                                                                                 \
    "bic r10, " z ", " z ", asr #31\n"                                                             \
    "rsb r11, " z ", r10, lsl #1\n"                                                                \
    "lsr " z ", r11, r4\n"                                                                         \
    "cmp " z ", #127\n"                                                                            \
    "bhi .Ldsp_far" n "\n"                                                                         \
    "ldr " z ", [r5, " z ", lsl #1]\n"                                                             \
    "and r11, r11, r6\n"                                                                           \
    "mla r11, r11, r7, r8\n"                                                                       \
    "smlad r11, " z ", r11, r9\n"                                                                  \
    ".Ldsp_near" n ": sub " z ", r10, r11, asr #10\n"
#define SILU_FAR(n)                                                                                \
    ".Ldsp_far" n ":\n"                                                                            \
    "push {lr}\n"                                                                                  \
    "bl .Ldsp_far\n"                                                                               \
    "pop {lr}\n"                                                                                   \
    "b .Ldsp_near" n "\n"
#define SILU_END                                                                                   \
    "ldr r11, [sp]\n"                                                                              \
    "ldmia r11, {r4-r9}\n"                                                                         \
    "adds r5, r5, #2\n"

/* Sums to z by any shift, which is in r4. */
#if TWIN_SILU
#define LIMIT(z)                                                                                   \
    "ssat " z ", #16, " z "\n"                                                                     \
    "cmn " z ", #32768\n"                                                                          \
    "it eq\n"                                                                                      \
    "addeq " z ", " z ", #1\n"
#else
#define LIMIT(z)
#endif
#define ANY(z)                                                                                     \
    "smlawb " z ", " z ", r10, r11\n"                                                              \
    "asrs " z ", r4\n" LIMIT(z)

/* Fields of twin_layer. */
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
typedef char dsp_knows_layers[offsetof(twin_layer, fold) == 20 &&
                                      offsetof(twin_layer, shift) == 30 &&
                                      offsetof(twin_layer, silu) == 33
                                  ? 1
                                  : -1];

/* clang-format off */
__asm(".pushsection .text.twin_dsp, \"ax\", %progbits\n"
      ".syntax unified\n"
      ".balign 4\n"
      ".global twin_dsp_query, twin_dsp_first, twin_dsp_further\n"
      ".type twin_dsp_query, %function\n"
      ".type twin_dsp_first, %function\n"
      ".type twin_dsp_further, %function\n"

      "twin_dsp_query:\n"
      "push {r3-r11, lr}\n"
      "ldrd r4, r7, [r0, " BIAS "]\n"
      "ldrh r5, [r0, " ROW "]\n"
      "ldrh r9, [r0, " OUTPUTS "]\n"
      "sub r4, r4, r7, lsl #1\n"
      "lsrs r5, r5, #2\n"
      "mov r6, r1\n"
      "adr r10, .Ldsp_query + 1\n"
      "push {r4-r6, r10}\n"
      "mov r5, r7\n"
      "mov r6, r2\n"
      "adr r1, .Ldsp_keep + 1\n"
      "push {r4-r9}\n"
      "mov r11, sp\n"
      "b .Ldsp_go\n"

      "twin_dsp_further:\n"
      "push {r3-r11, lr}\n"
      "ldrd r4, r6, [r0, " BIAS "]\n"
      "ldrh r5, [r0, " ROW "]\n"
      "sub r4, r4, r6, lsl #1\n"
      "adr r7, .Ldsp_turns\n"
      "lsrs r5, r5, #2\n"
      "negs r6, r5\n"
      "ands r6, r6, #2 * " TURNS " - 1\n"
      "ldrh r8, [r7, r6, lsl #1]\n"
      "add r12, r8, r7\n"
      "add r5, r5, r6\n"
      "mov r8, #2 * " TURNS "\n"
      "udiv r5, r5, r8\n"
      "adr r10, .Ldsp_further + 1\n"
      "cbz r6, .Ldsp_layer\n"
      "adr r10, .Ldsp_detour + 1\n"
      "b .Ldsp_layer\n"

      "twin_dsp_first:\n"
      "ldr r12, [sp]\n"
      "push {r3-r11, lr}\n"
      "ldr r4, [r0, " MULTIPLIER "]\n"
      "ldrh r5, [r0, " ROW "]\n"
      "sub r4, r12, r4, lsl #2\n"
      "lsrs r5, r5, #2\n"
      "adr r10, .Ldsp_first + 1\n"

      /* r0 layer, r1 in, r2 out, r3 difference, r4 seed, r5 rounds, r10 loop, r12 detour */
      ".Ldsp_layer:\n"
      "mov r6, r1\n"
      "push {r4-r6, r10}\n"
      "ldrb r4, [r0, " SHIFT "]\n"
      "ldr r5, [r0, " MULTIPLIER "]\n"
      "ldrh r9, [r0, " OUTPUTS "]\n"
      "adr r1, .Ldsp_store + 1\n"
      "mov r6, r2\n"
      "ldr r7, .Ldsp_steps\n"
      "cbnz r2, 1f\n"
      "adr r1, .Ldsp_fold + 1\n"
      "ldr r6, [r0, " FOLD_WEIGHTS "]\n"
      "ldrd r7, r8, [r3]\n"
      "1:\n"
      "rsb r3, r4, #16\n"
#if TWIN_SILU
      "ldrb r10, [r0, " IS_SILU "]\n"
      "cmp r10, #0\n"
      "beq 2f\n"
      "adr r1, .Ldsp_silu_store + 1\n"
      "cbnz r2, 1f\n"
      "adr r1, .Ldsp_silu_fold + 1\n"
      "1:\n"
      "ldrb r2, [r0, " FRACTION "]\n"
      "cmp r2, #13\n"
      "it hi\n"
      "movhi r3, #16\n"
      "2:\n"
#endif
      "add lr, r1, #" BEHIND "\n"
      "cmp r3, #15\n"
      "itt hi\n"
      "movhi r3, r4\n"
      "adrhi r1, .Ldsp_any + 1\n"
      "mov r4, r3\n"
      "push {r4-r9}\n"
      "mov r11, sp\n"
#if TWIN_SILU
      "cmp r10, #0\n"
      "beq .Ldsp_go\n"
      "ldr r5, [r0, " CURVE "]\n"
      "subs r4, r2, #5\n"
      "mov r8, #1\n"
      "lsl r8, r8, r4\n"
      "sub r6, r8, #1\n"
      "movw r7, #65535\n"
      "mov r9, #512\n"
      "cmp r4, #10\n"
      "it eq\n"
      "moveq r9, #0\n"
      "push {r4-r9}\n"
#endif
      ".Ldsp_go:\n"
      "mov r2, r12\n"
      "mov r3, lr\n"
      "ldr r5, [r0, " MULTIPLIER "]\n"
      "ldrd r12, lr, [r0, " WEIGHTS "]\n"
      "mov r0, r11\n"
      "push {r0-r3}\n"
      "adds r11, r11, #24\n"
      LOOP

      /* Zeros up to a multiple of four, by which the steps are where they began. */
      "1:\n"
      "movs r0, #0\n"
      "movs r1, #0\n"
      "movs r2, #0\n"
      "movs r3, #0\n"
      STORE_AND_STEP
      ".Ldsp_stored:\n"
      "lsrs r0, r7, #24\n"
      "cmp r0, #14\n"
      "bne 1b\n"
      ".Ldsp_return:\n"
      "adds r11, r11, #16\n"
      "mov sp, r11\n"
      "pop {r3-r11, pc}\n"
      ".Ldsp_folded:\n"
      "ldr r0, [r11, #16]\n"
      "strd r7, r8, [r0]\n"
      "b .Ldsp_return\n"

      ".balign 4\n"
      ".Ldsp_steps: .word 0x0E10F210\n" /* 16, -14, 16, 14 */
      ".Ldsp_turns:\n"
      EACH_TURN(TURN_PLACES)

      ".Ldsp_query:\n"
      SEEDS
      "b .Ldsp_features\n"
      ".Ldsp_first:\n"
      BEGIN_FIRST
      ".Ldsp_features:\n"
      FEATURES
      NEXT_FEATURES

      EACH_TURN(TURN_ODD)
      ".Ldsp_detour:\n"
      SEEDS
      "ldr pc, [sp, #8]\n"
      ".Ldsp_further:\n"
      BEGIN_FURTHER
      EACH_TURN(TURN)
      "subs r10, r10, #1\n"
      "bne .Ldsp_turn0\n"
      FINISH

      ".Ldsp_keep:\n"
      "ldmia r11, {r4-r9}\n"
      "adds r5, r5, #2\n"
      "strd r1, r0, [r6], #8\n"
      NEXT
      "beq .Ldsp_return\n"
      LOOP
      ".Ldsp_fold:\n"
      STATE REQUANTISE RELU FOLD
      ".Ldsp_store:\n"
      STATE REQUANTISE RELU STORE

      /* Shifts for which a multiplier is no fraction of 2^32, or does not round. And silu whose z
       * would have to be limited even where its curve has narrow steps. */
      ".Ldsp_any:\n"
      STATE
      "mov r11, #1\n"
      "lsl r11, r11, r4\n"
      "lsr r11, r11, #1\n"
      ANY("r0") ANY("r1") ANY("r2") ANY("r3")
      "ldr r11, [sp]\n"
      "ldr pc, [sp, #12]\n"
#if TWIN_SILU
      ".Ldsp_silu_fold:\n"
      SILU_STATE REQUANTISE
      "ldmdb r11, {r4-r9}\n"
      SILU("r0", "0") SILU("r1", "1") SILU("r2", "2") SILU("r3", "3")
      SILU_END FOLD
      SILU_FAR("0") SILU_FAR("1") SILU_FAR("2") SILU_FAR("3")
      ".Ldsp_silu_store:\n"
      SILU_STATE REQUANTISE
      "ldmdb r11, {r4-r9}\n"
      SILU("r0", "4") SILU("r1", "5") SILU("r2", "6") SILU("r3", "7")
      SILU_END STORE
      SILU_FAR("4") SILU_FAR("5") SILU_FAR("6") SILU_FAR("7")

      /* r10: max(z, 0), r11: |z|; returns r10 limited, r11: 1024 times the bump. */
      ".Ldsp_far:\n"
      "push {r0, r1}\n"
      "usat r10, #15, r10\n"
      "usat r11, #15, r11\n"
      "lsr r0, r11, r4\n"
      "cmp r0, #128\n"
      "bcc 1f\n"
      "movs r0, #128\n"
      "lsls r0, r4\n"
      "sub r11, r11, r0\n"
      "adds r1, r4, #2\n"
      "lsr r0, r11, r1\n"
      "adds r0, #128\n"
      "cmp r0, #192\n"
      "bcs 2f\n"
      "ldr r0, [r5, r0, lsl #1]\n"
      "lsl r1, r8, #2\n"
      "subs r1, #1\n"
      "and r11, r11, r1\n"
      "adds r1, #1\n"
      "mla r11, r11, r7, r1\n"
      "lsl r1, r9, #2\n"
      "smlad r11, r0, r11, r1\n"
      "asr r11, r11, #2\n"
      "b 3f\n"
      "1: ldr r0, [r5, r0, lsl #1]\n"
      "and r11, r11, r6\n"
      "mla r11, r11, r7, r8\n"
      "smlad r11, r0, r11, r9\n"
      "b 3f\n"
      "2: mov r11, #0\n"
      "3: pop {r0, r1}\n"
      "bx lr\n"
#endif
      ".popsection");
/* clang-format on */

/* Put numbers in the order of weights: of four, two words and a gap of two. */
static void dsp_arrange(uint32_t *to, twin_flash from, unsigned count) {
    unsigned i;
    for (i = 0; i < count; i += 4, from += 8) {
        uint32_t low = twin_u32(from), high = twin_u32(from + 4);
        to[i] = (low & 0xFFFFu) | high << 16;
        to[i + 1] = low >> 16 | (high & 0xFFFF0000u);
    }
}

static void dsp_query(const twin_layer *layer, const int16_t *query, void *partial) {
    uint32_t *room = (uint32_t *)(void *)((uint8_t *)query - 2 * PAIRS * layer->row);
    dsp_arrange(room, (twin_flash)query, layer->row);
    twin_dsp_query(layer, room, partial);
}

static void dsp_first(const twin_layer *layer, const twin_pairs *pairs, void *out,
                      int32_t *difference) {
    uint32_t *room = (uint32_t *)pairs->room;
    dsp_arrange(room, pairs->anchor[0], layer->row);
    dsp_arrange(room + 2, pairs->anchor[1], layer->row);
    twin_dsp_first(layer, room, out, difference, pairs->partial);
}

const twin_kernel twin_kernel_dsp = {
    PAIRS,            /* pairs */
    4,                /* unit */
    8,                /* align */
    8,                /* partial_bytes */
    4 * PAIRS,        /* block_bytes */
    dsp_query,        /* query */
    dsp_first,        /* first */
    twin_dsp_further, /* further */
    2 * PAIRS,        /* room_bytes */
};

#endif
