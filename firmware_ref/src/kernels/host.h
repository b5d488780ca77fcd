/* The kernels of processors that run an operating system, and the choice among them at run time.
 * They are there with -DTWIN_HOST; a program puts the first of twin_host_kernel into model.kernel
 * when it has opened a pack, before it asks for the size of the scratch. */

#ifndef TWIN_KERNELS_HOST_H
#define TWIN_KERNELS_HOST_H

#include "../twin_kernel.h"

/* They are written for gcc and clang, and take pairs in eights. */
#if defined(TWIN_HOST) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&        \
    TWIN_BLOCK % 8 == 0 && TWIN_BLOCK <= 120 && TWIN_PARTIAL
#if defined(__aarch64__)
#define TWIN_HOST_ARM 1
#elif defined(__x86_64__)
#define TWIN_HOST_X86 1
#endif
#if defined(TWIN_HOST_EMULATED) /* by a test: functions stand for the instructions of x86-64 */
#undef TWIN_HOST_ARM
#undef TWIN_HOST_X86
#define TWIN_HOST_X86 1
#endif
#if TWIN_HOST_X86 && TWIN_BLOCK % 16 == 0
#define TWIN_HOST_VNNI 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TWIN_HOST_ARM
extern const twin_kernel twin_kernel_neon;
extern const twin_kernel twin_kernel_neon_dot;
#elif TWIN_HOST_X86
extern const twin_kernel twin_kernel_avx2;
#if TWIN_HOST_VNNI
extern const twin_kernel twin_kernel_vnni;
#endif
#endif

/* Kernel `number` of those that this processor has for the model, the fastest first, and its name;
 * NULL behind the last. */
const twin_kernel *twin_host_kernel(const twin_model *model, unsigned number, const char **name);

#ifdef __cplusplus
}
#endif

#endif
