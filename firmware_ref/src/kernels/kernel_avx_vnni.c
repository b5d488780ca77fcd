/* x86-64 with AVX-VNNI, which exists without AVX-512, too: VPDPWSSD is VPMADDWD and the sum in one.
 */

#include "x86.h"

#if TWIN_HOST_AVX_VNNI

TARGET("avx2,avxvnni")

#define NAME(word)            avx_vnni_##word
#define LANES                 8
#define ADD_PRODUCTS(a, x, y) _mm256_dpwssd_avx_epi32(a, x, y)
#include "x86_vectors.h"
#include "layers.h"
#include "x86_prepared.h"

#define KERNEL twini_kernel_avx_vnni
#define ALIGN  32
#include "host_kernel.h"

TARGET_END

#endif
