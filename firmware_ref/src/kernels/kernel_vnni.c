/* x86-64 with AVX-512-VNNI. (VPDPBUSD would take bytes, so 16-bit activations would need it twice.)
 */

#include "x86.h"

#if TWIN_HOST_VNNI

TARGET("avx2,avx512f,avx512bw,avx512vnni")

#define NAME(word)            vnni_##word
#define LANES                 16
#define ADD_PRODUCTS(a, x, y) _mm512_dpwssd_epi32(a, x, y)
#include "x86_vectors.h"
#include "layers.h"
#include "x86_prepared.h"

#define KERNEL twini_kernel_vnni
#define ALIGN  64
#include "host_kernel.h"

TARGET_END

#endif
