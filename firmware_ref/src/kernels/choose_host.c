/* Which kernel a model takes where the processor is known at run time only. */

#include "host.h"

#ifdef TWIN_HOST

#if TWIN_HOST_ARM && !defined(__ARM_FEATURE_DOTPROD) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if TWIN_HOST_ARM
static int twin_has_dot(void) {
#if defined(__ARM_FEATURE_DOTPROD)
    return 1;
#elif defined(__linux__)
    return (int)(getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
#else
    return 0;
#endif
}
#endif

typedef struct twin_offer {
    const char *name;
    const twin_kernel *kernel;
    int here; /* whether this processor has it, for this model */
} twin_offer;

const twin_kernel *twin_host_kernel(const twin_model *model, unsigned number, const char **name) {
    const twin_offer offers[] = {
#if TWIN_HOST_ARM
        {"neon_dot", &twin_kernel_neon_dot, !model->wide && twin_has_dot()},
        {"neon", &twin_kernel_neon, 1},
#elif TWIN_HOST_X86
#if TWIN_HOST_VNNI
        {"vnni", &twin_kernel_vnni, __builtin_cpu_supports("avx512vnni") != 0},
#endif
        {"avx2", &twin_kernel_avx2, __builtin_cpu_supports("avx2") != 0},
#endif
        {"portable", &twin_kernel_portable, 1},
    };
    unsigned i;
    (void)model;
    for (i = 0; i < sizeof offers / sizeof *offers; i++)
        if (offers[i].here && !number--) {
            if (name)
                *name = offers[i].name;
            return offers[i].kernel;
        }
    return 0;
}

#endif
