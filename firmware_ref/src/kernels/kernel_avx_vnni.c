/* x86-64 with AVX-VNNI, which exists without AVX-512, too: VPDPWSSD is VPMADDWD and the sum in one.
 */

#include "host.h"

#if TWIN_HOST_AVX_VNNI

TARGET("avx2,avxvnni")

#define ADD_PRODUCTS(a, x, y) _mm256_dpwssd_avx_epi32(a, x, y)
#include "x86_ymm.h"

#include "x86_words.h"

#define KERNEL twini_kernel_avx_vnni
#include "host_kernel.h"

TARGET_END

#endif
