/* Parts of kernel_dsp.c: the query's share in the first layer, loops over inputs, and the way from
 * the sums of an output to activations. */

/* ---- the query's share, and the order of features ---- */

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

/* ---- loops over inputs, which add up the columns of an output in r0 .. r3 ---- */

/* Four columns with half of four weights, `to`. */
#define HALF(to, from) HALF_FROM(to, from, "r1", "r2", "r3")
#define HALF_FROM(to, from, first, second, third)                                                  \
    "ldmia.w r11!, {r4-r7}\n"                                                                      \
    "sxtb16 " to ", " from "\n"                                                                    \
    "smlad r3, " to ", r7, " third "\n"                                                            \
    "smlad r2, " to ", r6, " second "\n"                                                           \
    "smlad r1, " to ", r5, " first "\n"                                                            \
    "smlad r0, " to ", r4, r0\n"

/* A turn is eight inputs. It may be entered in the middle, for a remainder of four. */
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
#define FIRST_EIGHT LOAD_EIGHT HALF_FROM("lr", "r8", "r0", "r0", "r0") "b .Ldsp_rest0\n"
#define SEEDS                                                                                      \
    "mov r1, r0\n"                                                                                 \
    "mov r2, r0\n"                                                                                 \
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

/* Small when optimising for size, but not with silu, which is large anyway. */
#if defined(__OPTIMIZE_SIZE__) && !TWIN_SILU
#define TURNS           "2"
#define TURN_BITS       "2" /* two to this power is the fours of inputs in all turns */
#define EACH_TURN(what) what("0") what("1")
#else
#define TURNS     "8"
#define TURN_BITS "4"
#define EACH_TURN(what)                                                                            \
    what("0") what("1") what("2") what("3") what("4") what("5") what("6") what("7")
#endif

/* ---- from sums to activations: requantised, relu, stored in a block or folded into the totals of
 * the pairs ---- */

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
