/* x86-64 with AVX-512-VNNI. (VPDPBUSD would take bytes, so 16-bit activations would need it twice.)
 */

#include "host.h"

#if TWIN_HOST_VNNI

TARGET("avx2,avx512f,avx512bw,avx512vnni")

#include "x86_zmm.h"

#include "x86_words.h"

#define KERNEL twini_kernel_vnni
#include "host_kernel.h"

TARGET_END

#endif
