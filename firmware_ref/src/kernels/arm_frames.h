/* Assembler directives for Cortex-M functions, besides their instructions: where they begin and
 * end, and how to unwind the stack from any point. The latter goes to .debug_frame, which debuggers
 * read and no device holds.
 *
 * A function that saves registers says so after its push. FRAME(n) says that it now uses n bytes of
 * stack, including the registers. */

#ifndef TWIN_KERNELS_ARM_FRAMES_H
#define TWIN_KERNELS_ARM_FRAMES_H

#define FUNCTION(name)                                                                             \
    ".balign 4\n"                                                                                  \
    ".global " name "\n"                                                                           \
    ".hidden " name "\n"                                                                           \
    ".type " name ", %function\n" name ":\n"                                                       \
    ".cfi_sections .debug_frame\n"                                                                 \
    ".cfi_startproc\n"
#define END_OF(name)                                                                               \
    ".cfi_endproc\n"                                                                               \
    ".size " name ", . - " name "\n"

#define FRAME(bytes)               ".cfi_def_cfa_offset " bytes "\n"
#define KEPT(register, at)         ".cfi_offset " register ", -" at "\n"
#define KEPT_R4_TO_R7(a, b, c, d)  KEPT("r4", a) KEPT("r5", b) KEPT("r6", c) KEPT("r7", d)
#define KEPT_R8_TO_R11(a, b, c, d) KEPT("r8", a) KEPT("r9", b) KEPT("r10", c) KEPT("r11", d)

/* push {r4-r11, lr} */
#define PUSHED_R4_TO_R11                                                                           \
    FRAME("36")                                                                                    \
    KEPT_R4_TO_R7("36", "32", "28", "24") KEPT_R8_TO_R11("20", "16", "12", "8") KEPT("lr", "4")

#endif
