/* x86-64 with AVX2: VPMADDWD multiplies two activations of each column with two weights. */

#include "x86.h"

#if TWIN_HOST_X86

TARGET("avx2")

#define NAME(word)            avx2_##word
#define LANES                 8
#define ADD_PRODUCTS(a, x, y) _mm256_add_epi32(a, _mm256_madd_epi16(x, y))
#include "x86_vectors.h"
#include "layers.h"
#include "x86_prepared.h"

#define KERNEL twini_kernel_avx2
#define ALIGN  32
#include "host_kernel.h"

TARGET_END

#endif
