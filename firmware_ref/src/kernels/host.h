/* Where host kernels are compiled, and what they are written in: they process pairs in eights, and
 * each function between TARGET and TARGET_END may use the instructions that it names.
 *
 * To add one, write kernel_NAME.c, which defines twini_kernel_NAME (host_kernel.h); declare it
 * below, under the condition that it can be compiled; put it into the list in choose_host.c, where
 * faster ones come first; and into that of tests/firmware/library.py, by which all tests run it.
 * Builds compile every file of this folder. Programs find it in twin_kernel_name. */

#ifndef TWIN_KERNELS_HOST_H
#define TWIN_KERNELS_HOST_H

#include "../twin_kernel.h"

#ifndef TWIN_HOST_EMULATED /* set by a test that replaces x86-64 instructions by functions */
#define TWIN_HOST_EMULATED 0
#endif

#if TWIN_HOST && defined(__GNUC__) && TWIN_BLOCK % 8 == 0 && TWIN_BLOCK <= 120 && TWIN_PARTIAL
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#if defined(__x86_64__) || TWIN_HOST_EMULATED
#define TWIN_HOST_X86 1
#elif defined(__aarch64__)
#define TWIN_HOST_ARM 64
#elif defined(__arm__) && (defined(__ARM_NEON) || (defined(__ARM_PCS_VFP) && !defined(__clang__)))
#define TWIN_HOST_ARM 32 /* clang needs a flag for NEON, gcc accepts an attribute */
#endif
#endif
#endif
#ifndef TWIN_HOST_X86
#define TWIN_HOST_X86 0
#endif
#ifndef TWIN_HOST_ARM
#define TWIN_HOST_ARM 0
#endif
/* Whether the compiler knows of I8MM. */
#if defined(__clang__)
#define TWIN_HOST_I8MM (TWIN_HOST_ARM == 64 && __clang_major__ >= 12)
#elif defined(__GNUC__)
#define TWIN_HOST_I8MM (TWIN_HOST_ARM == 64 && __GNUC__ >= 10)
#else
#define TWIN_HOST_I8MM 0
#endif
#define TWIN_HOST_VNNI (TWIN_HOST_X86 && TWIN_BLOCK % 16 == 0)
/* Instructions that older compilers do not know. */
#if TWIN_HOST_X86 && (defined(__clang__) ? __clang_major__ > 11 : __GNUC__ > 10)
#define TWIN_HOST_AVX_VNNI 1
#else
#define TWIN_HOST_AVX_VNNI 0
#endif
#define TWIN_HOST_AMX (TWIN_HOST_VNNI && TWIN_HOST_AVX_VNNI)

#if TWIN_HOST_ARM
TWIN_DECLARE(twini_kernel_neon)
#endif
#if TWIN_HOST_ARM == 64
TWIN_DECLARE(twini_kernel_neon_dot)
#endif
#if TWIN_HOST_I8MM
TWIN_DECLARE(twini_kernel_neon_i8mm)
#endif
#if TWIN_HOST_X86
TWIN_DECLARE(twini_kernel_avx2)
#endif
#if TWIN_HOST_AVX_VNNI
TWIN_DECLARE(twini_kernel_avx_vnni)
#endif
#if TWIN_HOST_VNNI
TWIN_DECLARE(twini_kernel_vnni)
#endif
#if TWIN_HOST_AMX
TWIN_DECLARE(twini_kernel_amx)
#endif

#define TWIN_PRAGMA(words) _Pragma(#words)

/* Goes before loops whose numbers should stay in registers. */
#if defined(__clang__)
#define UNROLLED TWIN_PRAGMA(unroll)
#else
#define UNROLLED TWIN_PRAGMA(GCC unroll 16)
#endif

#if TWIN_HOST_EMULATED
#define TARGET(words)
#define TARGET_END
#elif defined(__clang__)
#define TARGET(words)                                                                              \
    TWIN_PRAGMA(clang attribute push(__attribute__((target(words))), apply_to = function))
#define TARGET_END TWIN_PRAGMA(clang attribute pop)
#else
#define TARGET(words) TWIN_PRAGMA(GCC push_options) TWIN_PRAGMA(GCC target(words))
#define TARGET_END    TWIN_PRAGMA(GCC pop_options)
#endif

/* 32-bit Raspberry Pi OS is compiled for ARMv6, which lacks NEON. */
#if TWIN_HOST_ARM == 32 && !defined(__ARM_NEON)
#define NEON_TARGET     TARGET("arch=armv7-a,fpu=neon")
#define NEON_TARGET_END TARGET_END
#else
#define NEON_TARGET
#define NEON_TARGET_END
#endif

#endif
