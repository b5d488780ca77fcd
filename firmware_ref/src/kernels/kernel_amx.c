/* x86-64 with AMX: a prepared model by products of tiles, and any other as with AVX-512-VNNI. */

#include "host.h"

#if TWIN_HOST_AMX

TARGET("avx2,avx512f,avx512bw,avx512vnni,avx512vbmi,amx-tile,amx-int8")

#include "x86_zmm.h"

#include "amx_tiles.h"

#define KERNEL twini_kernel_amx
#include "host_kernel.h"

TARGET_END

#endif
