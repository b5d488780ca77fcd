/* x86-64 with AVX2: VPMADDWD multiplies two activations of each column with two weights. */

#include "host.h"

#if TWIN_HOST_X86

TARGET("avx2")

#define ADD_PRODUCTS(a, x, y) _mm256_add_epi32(a, _mm256_madd_epi16(x, y))
#include "x86_ymm.h"

#include "x86_words.h"

#define KERNEL twini_kernel_avx2
#include "host_kernel.h"

TARGET_END

#endif
