/* Chooses the kernel for a model if the processor is known at run time only. */

#include "../../include/twin_host.h"
#include "host.h"

#if TWIN_HOST

#if TWIN_HOST_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

/* What the compiler may use in any case. */
#if defined(__ARM_NEON)
#define SURE_NEON 1
#else
#define SURE_NEON 0
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define SURE_DOT 1
#else
#define SURE_DOT 0
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define SURE_I8MM 1
#else
#define SURE_I8MM 0
#endif

#if TWIN_HOST_ARM
#if defined(__linux__)
#define REPORTED(which) getauxval(which)
#else
#define REPORTED(which) 0ul
#endif

/* Whether a feature is certain, or the system reports its bit. */
static int twini_has(int sure, unsigned long reported, unsigned bit) {
    return sure || (reported >> bit & 1);
}
#endif

#if TWIN_HOST_X86
#if !TWIN_HOST_EMULATED
#include <cpuid.h>
#endif

/* For what not every __builtin_cpu_supports knows: bit `bit` of EAX or EDX of leaf 7. */
static int twini_has(unsigned subleaf, int in_edx, unsigned bit) {
    unsigned a = ~0u, d = ~0u;
#if !TWIN_HOST_EMULATED
    unsigned b, c;
    if (!__get_cpuid_count(7, subleaf, &a, &b, &c, &d))
        return 0;
#else
    (void)subleaf;
#endif
    return (in_edx ? d : a) >> bit & 1;
}

static int twini_has_avx2(void) {
    return __builtin_cpu_supports("avx2") != 0;
}

static int twini_has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
}

static int twini_has_avx_vnni(void) {
    return twini_has_avx2() && twini_has(1, 0, 4);
}

/* AMX-TILE and AMX-INT8, and what else the kernel uses. */
static int twini_has_amx(void) {
    return twini_has_vnni() && __builtin_cpu_supports("avx512vbmi") && twini_has(0, 1, 24) &&
           twini_has(0, 1, 25);
}

/* Linux requires a request before a process uses tiles, as it then has to make room for them in the
 * saved state of threads: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA). */
static int twini_may_use_tiles(void) {
    long answer = -1;
#if TWIN_HOST_EMULATED
    answer = 0;
#elif defined(__linux__)
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(158L), "D"(0x1023L), "S"(18L)
                     : "rcx", "r11", "memory");
#endif
    return answer == 0;
}
#endif

typedef struct twini_offer {
    const char *name;
    const twin_kernel *kernel;
    int here; /* whether this processor has it, for this model */
} twini_offer;

TWIN_INTERNAL const twin_kernel *twini_host_kernel(const twin_model *model, unsigned number,
                                                   const char **name) {
    const twini_offer offers[] = {
#if TWIN_HOST_I8MM
        {"neon_i8mm", &twini_kernel_neon_i8mm,
         !model->wide && model->silu && twini_has(SURE_I8MM, REPORTED(AT_HWCAP2), 13)},
#endif
#if TWIN_HOST_ARM == 64
        {"neon_dot", &twini_kernel_neon_dot,
         !model->wide && twini_has(SURE_DOT, REPORTED(AT_HWCAP), 20)},
#endif
#if TWIN_HOST_ARM
        {"neon", &twini_kernel_neon, twini_has(SURE_NEON, REPORTED(AT_HWCAP), 12)},
#endif
#if TWIN_HOST_AMX
        {"amx", &twini_kernel_amx, !model->wide && twini_has_amx() && twini_may_use_tiles()},
#endif
#if TWIN_HOST_VNNI
        {"vnni", &twini_kernel_vnni, twini_has_vnni()},
#endif
#if TWIN_HOST_AVX_VNNI
        {"avx_vnni", &twini_kernel_avx_vnni, twini_has_avx_vnni()},
#endif
#if TWIN_HOST_X86
        {"avx2", &twini_kernel_avx2, twini_has_avx2()},
#endif
        {"portable", &twini_kernel_portable, 1},
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

const char *twin_kernel_name(const twin_model *model, unsigned number) {
    const char *name = 0;
    return model->kernel && twini_host_kernel(model, number, &name) ? name : 0;
}

twin_status twin_set_kernel(twin_model *model, unsigned number) {
    const twin_kernel *kernel = twini_host_kernel(model, number, 0);
    if (!model->kernel)
        return TWIN_ERROR_MODEL;
    if (!kernel)
        return TWIN_ERROR_UNSUPPORTED;
    model->kernel = kernel;
    return TWIN_OK;
}

#endif
