/* The query's share in the first layer, for kernel_dsp.c, and the order of features. */

#ifndef TWIN_KERNELS_DSP_QUERY_H
#define TWIN_KERNELS_DSP_QUERY_H

/* Put the features at r8 and r9 in the order of weights, two words of the one and two of the other,
 * alternating. They go to r11, and r10 is their number. */
#define ARRANGE                                                                                    \
    ".Ldsp_arrange:\n"                                                                             \
    ".cfi_sections .debug_frame\n"                                                                 \
    ".cfi_startproc\n"                                                                             \
    "ldrd r4, r5, [r8], #8\n"                                                                      \
    "pkhbt r12, r4, r5, lsl #16\n"                                                                 \
    "pkhtb r5, r5, r4, asr #16\n"                                                                  \
    "strd r12, r5, [r11], #8\n"                                                                    \
    "ldrd r4, r5, [r9], #8\n"                                                                      \
    "pkhbt r12, r4, r5, lsl #16\n"                                                                 \
    "pkhtb r5, r5, r4, asr #16\n"                                                                  \
    "strd r12, r5, [r11], #8\n"                                                                    \
    "subs r10, r10, #4\n"                                                                          \
    "bne .Ldsp_arrange\n"                                                                          \
    "bx lr\n"                                                                                      \
    ".cfi_endproc\n"

/* Eight features of the query in r8 .. r11. */
#define EIGHT_OF_QUERY(sum, weights)                                                               \
    "ldrd r6, r12, [" weights "], #8\n"                                                            \
    "sxtb16 lr, r6\n"                                                                              \
    "smlad " sum ", lr, r8, " sum "\n"                                                             \
    "sxtb16 lr, r6, ror #8\n"                                                                      \
    "smlad " sum ", lr, r9, " sum "\n"                                                             \
    "sxtb16 lr, r12\n"                                                                             \
    "smlad " sum ", lr, r10, " sum "\n"                                                            \
    "sxtb16 lr, r12, ror #8\n"                                                                     \
    "smlad " sum ", lr, r11, " sum "\n"

/* The rearranged query goes just before the query, twice. Eight features stay in registers. */
/* clang-format off */
#define QUERY                                                                                      \
    FUNCTION("twini_dsp_query")                                                                    \
    "push {r4-r11, lr}\n"                                                                          \
    PUSHED_R4_TO_R11                                                                               \
    "ldrh r6, [r0, " ROW "]\n"                                                                     \
    "mov r8, r1\n"                                                                                 \
    "mov r9, r1\n"                                                                                 \
    "sub r1, r1, r6, lsl #2\n"                                                                     \
    "mov r11, r1\n"                                                                                \
    "mov r10, r6\n"                                                                                \
    "bl .Ldsp_arrange\n"                                                                           \
    "ldrh r7, [r0, " OUTPUTS "]\n"                                                                 \
    "ldm r0, {r3, r4, r5}\n"                                                                       \
    "cmp r6, #8\n"                                                                                 \
    "beq 3f\n"                                                                                     \
    "1:\n"                                                                                         \
    "ldr r8, [r5], #4\n"                                                                           \
    "mov r9, r8\n"                                                                                 \
    "mov r10, r6\n"                                                                                \
    "2:\n"                                                                                         \
    "ldrd r12, lr, [r1], #16\n"                                                                    \
    "ldr r11, [r3], #4\n"                                                                          \
    "sxtb16 r0, r11\n"                                                                             \
    "smlad r8, r0, r12, r8\n"                                                                      \
    "sxtb16 r0, r11, ror #8\n"                                                                     \
    "smlad r8, r0, lr, r8\n"                                                                       \
    "ldr r11, [r4], #4\n"                                                                          \
    "sxtb16 r0, r11\n"                                                                             \
    "smlad r9, r0, r12, r9\n"                                                                      \
    "sxtb16 r0, r11, ror #8\n"                                                                     \
    "smlad r9, r0, lr, r9\n"                                                                       \
    "subs r10, r10, #4\n"                                                                          \
    "bne 2b\n"                                                                                     \
    "sub r1, r1, r6, lsl #2\n"                                                                     \
    "strd r8, r9, [r2], #8\n"                                                                      \
    "subs r7, #1\n"                                                                                \
    "bne 1b\n"                                                                                     \
    "pop {r4-r11, pc}\n"                                                                           \
    "3:\n"                                                                                         \
    "ldrd r8, r9, [r1]\n"                                                                          \
    "ldrd r10, r11, [r1, #16]\n"                                                                   \
    "4:\n"                                                                                         \
    "ldr r0, [r5], #4\n"                                                                           \
    "mov r1, r0\n"                                                                                 \
    EIGHT_OF_QUERY("r0", "r3")                                                                     \
    EIGHT_OF_QUERY("r1", "r4")                                                                     \
    "strd r0, r1, [r2], #8\n"                                                                      \
    "subs r7, #1\n"                                                                                \
    "bne 4b\n"                                                                                     \
    "pop {r4-r11, pc}\n"                                                                           \
    END_OF("twini_dsp_query")
/* clang-format on */

#endif
