/* x86-64 with AMX: a prepared model by products of tiles, and any other as with AVX-512-VNNI. */

#include "x86.h"

#if TWIN_HOST_AMX

TARGET("avx2,avx512f,avx512bw,avx512vnni,avx512vbmi,amx-tile,amx-int8")

#define NAME(word)            amx_##word
#define LANES                 16
#define ADD_PRODUCTS(a, x, y) _mm512_dpwssd_epi32(a, x, y)
#include "x86_vectors.h"
#include "layers.h"
#define TILES
#include "x86_prepared.h"

#define KERNEL twini_kernel_amx
#define ALIGN  64
#include "host_kernel.h"

TARGET_END

#endif
