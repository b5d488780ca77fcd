/* From the sums of an output to activations, for kernel_dsp.c: requantised, relu, stored in a block
 * or folded into the totals of the pairs. */

#ifndef TWIN_KERNELS_DSP_FINISH_H
#define TWIN_KERNELS_DSP_FINISH_H

#define TWIN_STRING(number)  TWIN_STRING_(number)
#define TWIN_STRING_(number) #number

/* Sums to z: the upper half of 64-bit products, rounded, is what FORMAT.md defines. */
#define REQUANTISE(by)                                                                             \
    "ldrsh " by ", [r5], #2\n"                                                                     \
    "lsl " by ", " by ", r4\n"                                                                     \
    "smmulr r0, r0, " by "\n"                                                                      \
    "smmulr r1, r1, " by "\n"                                                                      \
    "smmulr r2, r2, " by "\n"                                                                      \
    "smmulr r3, r3, " by "\n"

/* The same for any shift. */
#define ANY(z)                                                                                     \
    "smlawb " z ", " z ", r10, r11\n"                                                              \
    "asrs " z ", r4\n"

#define RELU                                                                                       \
    "usat r0, #15, r0\n"                                                                           \
    "usat r1, #15, r1\n"                                                                           \
    "usat r2, #15, r2\n"                                                                           \
    "usat r3, #15, r3\n"

#define SUBTRACT                                                                                   \
    "subs r0, r0, r1\n"                                                                            \
    "subs r2, r2, r3\n"
#define FOLD                                                                                       \
    "ldrsh r1, [r6], #2\n"                                                                         \
    "mla r7, r0, r1, r7\n"                                                                         \
    "mla r8, r2, r1, r8\n"
/* The same in both orders, and in one of them with the weights of the second output. The totals of
 * the other order, and those of the second output, are kept where the caller has them. */
#define BACK "#4 * " TWIN_STRING(TWIN_BLOCK)
#define HARD "#8 * " TWIN_STRING(TWIN_BLOCK)
#define FOLD_BOTH                                                                                  \
    "ldr lr, [r6, #4]!\n"                                                                          \
    "smlabb r7, r0, lr, r7\n"                                                                      \
    "smlabb r8, r2, lr, r8\n"                                                                      \
    "ldr r0, [sp, " STATE "]\n"                                                                    \
    "ldrd r10, r11, [r0, " BACK "]\n"                                                              \
    "smlabb r10, r1, lr, r10\n"                                                                    \
    "smlabb r11, r3, lr, r11\n"                                                                    \
    "strd r10, r11, [r0, " BACK "]\n"                                                              \
    "ldrd r10, r11, [r0, " HARD "]\n"                                                              \
    "smlabt r10, r1, lr, r10\n"                                                                    \
    "smlabt r11, r3, lr, r11\n"                                                                    \
    "strd r10, r11, [r0, " HARD "]\n"                                                              \
    "ldrd r10, r11, [sp, " INPUT "]\n"
#define STORE                                                                                      \
    "strh r0, [r6]\n"                                                                              \
    "strh r1, [r6, #4]\n"                                                                          \
    "strh r2, [r6, #8]\n"                                                                          \
    "strh r3, [r6, #12]\n"                                                                         \
    "sxtab r6, r6, r7\n"                                                                           \
    "ror r7, r7, #8\n"

/* Go on to the next output, whose seed is fetched; or to the end. */
#define NEXT(end)                                                                                  \
    "subs r4, r4, #256\n"                                                                          \
    "stmia sp, {r4-r9}\n"                                                                          \
    "bcc " end "\n"                                                                                \
    "ldr pc, [sp, " LOOP "]\n"
#define NEXT_FOLDED "ldr r0, [r9], #4\n" NEXT(".Ldsp_folded")
#define NEXT_STORED "ldrd r0, r1, [r9], #8\n" NEXT(".Ldsp_stored")

#endif
