/* silu in kernel_dsp.c: four sums to four activations, by the lines of twin_lines.c.
 *
 * What a layer needs of them is on the stack, after its other state:
 *
 *     width     steps of the curve are 2^width
 *     lines
 *     origin    2^width, less the offset in the upper half
 *     half      what rounds 1024 h
 *     offset    of z, so that it is not negative where a line is; 0 where there are no lines
 *     curve     of the pack
 *     check     where to continue once sums are requantised in a different way */

#define SILU_CURVE "76"
#define SILU_CHECK "#80"
#define SILU_LAYER                                                                                 \
    "add r8, sp, #56\n"                                                                            \
    "ldmia r8, {r4-r8}\n"

/* Sums to z + offset. */
#define SILU_REQUANTISE                                                                            \
    "ldrsh r9, [r5]\n"                                                                             \
    "lsl r9, r9, r4\n" SILU_LAYER "smmlar r0, r0, r9, r8\n"                                        \
    "smmlar r1, r1, r9, r8\n"                                                                      \
    "smmlar r2, r2, r9, r8\n"                                                                      \
    "smmlar r3, r3, r9, r8\n"

/* z + offset to 1024 h, if it is on a line: one SMLAD of (base, slope) and (2^width, z). */
#define LINE(z) "lsr r9, " z ", r4\n" LINE_OF(z)
#define LINE_OF(z)                                                                                 \
    "add " z ", r6, " z ", lsl #16\n"                                                              \
    "ldr r9, [r5, r9, lsl #2]\n"                                                                   \
    "smlad " z ", r9, " z ", r7\n"

/* All four at once, or one by one if one of them is not on a line. */
/* clang-format off */
#define SILU(n)                                                                                    \
    SILU_REQUANTISE                                                                                \
    ".Ldsp_check" n ":\n"                                                                          \
    "orr r9, r0, r1\n"                                                                             \
    "orr r9, r9, r2\n"                                                                             \
    "orr r9, r9, r3\n"                                                                             \
    "cmp r9, r8, lsl #1\n"                                                                         \
    "bcs .Ldsp_apart" n "\n"                                                                       \
    LINE("r0") LINE("r1") LINE("r2") LINE("r3")                                                    \
    ".Ldsp_joined" n ":\n"                                                                         \
    "ldmia sp, {r4-r9}\n"                                                                          \
    "adds r5, r5, #2\n"
/* clang-format on */
#define SILU_SUBTRACT                                                                              \
    "asrs r0, r0, #10\n"                                                                           \
    "asrs r2, r2, #10\n"                                                                           \
    "sub r0, r0, r1, asr #10\n"                                                                    \
    "sub r2, r2, r3, asr #10\n"
#define SILU_SHIFT                                                                                 \
    "asrs r0, r0, #10\n"                                                                           \
    "asrs r1, r1, #10\n"                                                                           \
    "asrs r2, r2, #10\n"                                                                           \
    "asrs r3, r3, #10\n"

#define SILU_APART(n)                                                                              \
    ".Ldsp_apart" n ":\n"                                                                          \
    "adr r9, .Ldsp_joined" n " + 1\n"                                                              \
    "b .Ldsp_apart\n"
#define ONE(z, n)                                                                                  \
    "lsr r9, " z ", r4\n"                                                                          \
    "cmp " z ", r8, lsl #1\n"                                                                      \
    "bcs .Ldsp_far" n "\n" LINE_OF(z) ".Ldsp_near" n ":\n"
#define FAR(z, n)                                                                                  \
    ".Ldsp_far" n ":\n"                                                                            \
    "mov r9, " z "\n"                                                                              \
    "bl .Ldsp_far\n"                                                                               \
    "mov " z ", r9\n"                                                                              \
    "b .Ldsp_near" n "\n"

/* Clamp z, if sums are requantised by any shift. */
#define LIMIT(z)                                                                                   \
    "ssat " z ", #16, " z "\n"                                                                     \
    "cmn " z ", #32768\n"                                                                          \
    "it eq\n"                                                                                      \
    "addeq " z ", " z ", #1\n"                                                                     \
    "add " z ", " z ", r8\n"

/* .Ldsp_far: z + offset in r9 to 1024 h, by the curve itself: where it has its wider steps, where z
 * has to be clamped, and everywhere if it has no lines. The interpolation is one SMUAD: of two
 * entries with (2^width - r, r). */
/* clang-format off */
#define SILU_ELSEWHERE                                                                             \
    ".Ldsp_limit:\n"                                                                               \
    SILU_LAYER                                                                                     \
    LIMIT("r0") LIMIT("r1") LIMIT("r2") LIMIT("r3")                                                \
    "ldr pc, [sp, " SILU_CHECK "]\n"                                                               \
    ".Ldsp_apart:\n"                                                                               \
    "push {r9, r10, lr}\n"                                                                         \
    FRAME("52 + " STATE_BYTES)                                                                     \
    ONE("r0", "0") ONE("r1", "1") ONE("r2", "2") ONE("r3", "3")                                    \
    "pop {r9, r10, lr}\n"                                                                          \
    "bx r9\n"                                                                                      \
    FAR("r0", "0") FAR("r1", "1") FAR("r2", "2") FAR("r3", "3")                                    \
    ".Ldsp_far:\n"                                                                                 \
    "push {r0, r1, r2}\n"                                                                          \
    FRAME("64 + " STATE_BYTES)                                                                     \
    "sub r9, r9, r8\n"                                                                             \
    "bic r10, r9, r9, asr #31\n" /* max(z, 0) */                                                   \
    "rsb r9, r9, r10, lsl #1\n"  /* |z| */                                                         \
    "usat r10, #15, r10\n"                                                                         \
    "usat r9, #15, r9\n"                                                                           \
    "mov r2, r4\n"                                                                                 \
    "lsr r0, r9, r4\n"                                                                             \
    "cmp r0, #128\n"                                                                               \
    "bcc 1f\n"                                                                                     \
    "movs r0, #128\n"                                                                              \
    "lsls r0, r4\n"                                                                                \
    "sub r9, r9, r0\n"                                                                             \
    "adds r2, #2\n"                                                                                \
    "lsr r0, r9, r2\n"                                                                             \
    "adds r0, #128\n"                                                                              \
    "cmp r0, #192\n"                                                                               \
    "bcs 2f\n"                                                                                     \
    "1:\n"                                                                                         \
    "ldr r1, [sp, #24 + " SILU_CURVE "]\n"                                                         \
    "ldr r0, [r1, r0, lsl #1]\n"                                                                   \
    "movs r1, #1\n"                                                                                \
    "lsls r1, r2\n"                                                                                \
    "subs r1, #1\n"                                                                                \
    "and r9, r9, r1\n"                                                                             \
    "adds r1, #1\n"                                                                                \
    "sub r1, r1, r9\n"                                                                             \
    "orr r1, r1, r9, lsl #16\n"                                                                    \
    "smuad r0, r0, r1\n"                                                                           \
    "subs r2, r2, r4\n"                                                                            \
    "asrs r0, r2\n"                                                                                \
    "movw r1, #1023\n"                                                                             \
    "subs r1, r1, r7\n"                                                                            \
    "adds r0, r0, r1\n"                                                                            \
    "sub r10, r10, r0, asr #10\n"                                                                  \
    "2:\n"                                                                                         \
    "lsl r9, r10, #10\n"                                                                           \
    "pop {r0, r1, r2}\n"                                                                           \
    "bx lr\n"
/* clang-format on */

/* Where sums of a scaled layer are checked and finished; r12 is how relu would finish. */
#if TWIN_INTERVALS
#define SILU_CHECK_BOTH                                                                            \
    "ldrb r4, [r0, " IS_SCALED "]\n"                                                               \
    "cbz r4, 1f\n"                                                                                 \
    "adr r8, .Ldsp_check_both + 1\n"
#define SILU_FINISH_BOTH                                                                           \
    "ldrb r2, [r0, " IS_SCALED "]\n"                                                               \
    "cmp r2, #0\n"                                                                                 \
    "itt ne\n"                                                                                     \
    "addne r12, r12, #.Ldsp_silu_both - .Ldsp_fold\n"                                              \
    "bne 2f\n"
#else
#define SILU_CHECK_BOTH
#define SILU_FINISH_BOTH
#endif

/* Decided once per layer, as kernel_dsp.c does for relu. In .Ldsp_layer_of_silu r4 and r6 .. r8 are
 * free; in .Ldsp_finish_of_silu r2 is, r1 is `up`, and r12 how relu would finish. */
/* clang-format off */
#define SILU_CHOOSE                                                                                \
    ".Ldsp_layer_of_silu:\n"                                                                       \
    FRAME("40")                                                                                    \
    "ldr r7, [r0, " CURVE "]\n"                                                                    \
    "adr r8, .Ldsp_check_store + 1\n"                                                              \
    "cbnz r2, 1f\n"                                                                                \
    "adr r8, .Ldsp_check_fold + 1\n"                                                               \
    SILU_CHECK_BOTH                                                                                \
    "1:\n"                                                                                         \
    "push {r7, r8}\n"                                                                              \
    FRAME("48")                                                                                    \
    "ldrb r4, [r0, " FRACTION "]\n"                                                                \
    "ldr r6, [r0, " LINES "]\n"                                                                    \
    "movw r7, #511\n"                                                                              \
    "cmp r4, #15\n"                                                                                \
    "it eq\n"                                                                                      \
    "movweq r7, #1023\n"                                                                           \
    "subs r4, r4, #5\n"                                                                            \
    "ldr r8, [r6]\n"                                                                               \
    "cmp r8, #0\n"                                                                                 \
    "it ne\n"                                                                                      \
    "movne r8, #128\n"                                                                             \
    "lsl r8, r8, r4\n"                                                                             \
    "push {r7, r8}\n"                                                                              \
    FRAME("56")                                                                                    \
    "movs r7, #1\n"                                                                                \
    "lsls r7, r4\n"                                                                                \
    "sub r7, r7, r8, lsl #16\n"                                                                    \
    "push {r4, r6, r7}\n"                                                                          \
    FRAME("68")                                                                                    \
    "b .Ldsp_activation\n"                                                                         \
    ".Ldsp_finish_of_silu:\n"                                                                      \
    FRAME(STATE_BYTES)                                                                             \
    "adr r2, .Ldsp_limit + 1\n"                                                                    \
    "str r2, [sp, " BEHIND " - 40]\n"                                                              \
    "adr r2, .Ldsp_store + 1\n"                                                                    \
    "cmp r12, r2\n"                                                                                \
    "itt eq\n"                                                                                     \
    "adreq r12, .Ldsp_silu_store + 1\n"                                                            \
    "beq 2f\n"                                                                                     \
    SILU_FINISH_BOTH                                                                               \
    "add r12, r12, #.Ldsp_silu_fold - .Ldsp_fold\n"                                                \
    "2:\n"                                                                                         \
    "ldrb r2, [r0, " FRACTION "]\n"                                                                \
    "cmp r2, #13\n"                                                                                \
    "it hi\n"                                                                                      \
    "movhi r1, #16\n"                                                                              \
    "b .Ldsp_finish\n"                                                                             \
    FRAME("40 + " STATE_BYTES)
/* clang-format on */
