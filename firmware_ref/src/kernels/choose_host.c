/* Chooses the kernel for a model if the processor is known at run time only. */

#include "../../include/twin_host.h"
#include "host.h"

#if TWIN_HOST

#if TWIN_HOST_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

/* What kernels need, of the processor and of the model: a bit for each. */
enum {
    NEON = 1,
    DOT = 2,
    I8MM = 4,
    AVX2 = 8,
    AVX_VNNI = 16,
    AVX512_VNNI = 32,
    AVX512_BW = 64,
    AVX512_VBMI = 128,
    TILES = 256,
    BYTES = 512, /* weights of 8 bits */
    SILU = 1024
};

#if TWIN_HOST_ARM

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
#if defined(__linux__)
#define REPORTED(which) getauxval(which)
#else
#define REPORTED(which) 0ul
#endif

/* Whether a feature is certain, or the system reports its bit. */
static unsigned twini_has(unsigned sure, unsigned long reported, unsigned bit) {
    return sure | (unsigned)(reported >> bit & 1);
}

static unsigned twini_processor(unsigned of_model) {
    unsigned found = NEON * twini_has(SURE_NEON, REPORTED(AT_HWCAP), 12);
    (void)of_model;
#if TWIN_HOST_ARM == 64
    found |= DOT * twini_has(SURE_DOT, REPORTED(AT_HWCAP), 20);
#endif
#if TWIN_HOST_I8MM
    found |= I8MM * twini_has(SURE_I8MM, REPORTED(AT_HWCAP2), 13);
#endif
    return found;
}

#elif TWIN_HOST_X86

#if !TWIN_HOST_EMULATED
#include <cpuid.h>
#endif

#define SUPPORTED(name) ((unsigned)(__builtin_cpu_supports(name) != 0))

/* Whether kernels may use tiles, if there are some. Linux requires a request before a process does,
 * as it then has to make room for them in the saved state of threads:
 * arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA). */
static unsigned twini_may_use_tiles(unsigned has_tiles) {
    long answer = -1;
    if (has_tiles) {
#if TWIN_HOST_EMULATED
        answer = 0;
#elif defined(__linux__)
        __asm__ volatile("syscall"
                         : "=a"(answer)
                         : "a"(158L), "D"(0x1023L), "S"(18L)
                         : "rcx", "r11", "memory");
#endif
    }
    return answer == 0;
}

static unsigned twini_processor(unsigned of_model) {
    /* EAX to EDX of leaf 7 and its second part, for what not every __builtin_cpu_supports knows;
     * AMX-TILE and AMX-INT8 are two bits. */
    unsigned part[8] = {0}, tiles;
#if TWIN_HOST_EMULATED
    part[3] = part[4] = ~0u;
#else
    (void)__get_cpuid_count(7, 0, part, part + 1, part + 2, part + 3);
    (void)__get_cpuid_count(7, 1, part + 4, part + 5, part + 6, part + 7);
#endif
    tiles = of_model & BYTES && (part[3] >> 24 & 3) == 3;
    return AVX2 * SUPPORTED("avx2") | AVX_VNNI * (part[4] >> 4 & 1) |
           AVX512_VNNI * SUPPORTED("avx512vnni") | AVX512_BW * SUPPORTED("avx512bw") |
           AVX512_VBMI * SUPPORTED("avx512vbmi") | TILES * twini_may_use_tiles(tiles);
}

#else

static unsigned twini_processor(unsigned of_model) {
    (void)of_model;
    return 0;
}

#endif

typedef struct twini_offer {
    const char *name;
    const twin_kernel *kernel;
    unsigned needs;
} twini_offer;

TWIN_INTERNAL const twin_kernel *twini_host_kernel(const twin_model *model, unsigned number,
                                                   const char **name) {
    static const twini_offer offers[] = {
#if TWIN_HOST_I8MM
        {"neon_i8mm", &twini_kernel_neon_i8mm, I8MM | BYTES | SILU},
#endif
#if TWIN_HOST_ARM == 64
        {"neon_dot", &twini_kernel_neon_dot, DOT | BYTES},
#endif
#if TWIN_HOST_ARM
        {"neon", &twini_kernel_neon, NEON},
#endif
#if TWIN_HOST_AMX
        {"amx", &twini_kernel_amx, TILES | AVX512_VBMI | AVX512_VNNI | AVX512_BW | BYTES},
#endif
#if TWIN_HOST_VNNI
        {"vnni", &twini_kernel_vnni, AVX512_VNNI | AVX512_BW},
#endif
#if TWIN_HOST_AVX_VNNI
        {"avx_vnni", &twini_kernel_avx_vnni, AVX_VNNI | AVX2},
#endif
#if TWIN_HOST_X86
        {"avx2", &twini_kernel_avx2, AVX2},
#endif
        {"portable", &twini_kernel_portable, 0},
    };
    unsigned of_model = BYTES * !model->wide | SILU * model->silu, i;
    unsigned missing = ~(of_model | twini_processor(of_model));
    for (i = 0; i < sizeof offers / sizeof *offers; i++)
        if (!(offers[i].needs & missing) && !number--) {
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
