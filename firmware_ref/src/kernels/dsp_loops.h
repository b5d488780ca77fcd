/* Loops over inputs, for kernel_dsp.c: they add up the columns of an output in r0 .. r3. */

#ifndef TWIN_KERNELS_DSP_LOOPS_H
#define TWIN_KERNELS_DSP_LOOPS_H

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

#endif
