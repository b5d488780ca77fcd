/* For RISC-V with 32 bits and the M extension: a block of four outputs and four columns, which is
 * sixteen sums, stays in registers. (ESP32-C3, C6 and H2, GD32V, RP2350.)
 *
 * So every weight and every activation that is loaded is used four times, and a multiply-add takes
 * 2.5 instructions. Compilers run out of registers here, so this loop is in assembly. Weights have
 * 8 bits. */

#include "../twin_kernel.h"

#ifdef TWIN_KERNEL_RV32

#define GROUP   4
#define BY_WORD 0
#if defined(__riscv)
#define SUMS twini_rv32_sums
/* group_sums, but four outputs at a time. */
TWIN_ASSEMBLY void twini_rv32_sums(twin_flash weights, uint32_t stride, const int16_t *in,
                                   uint32_t count, twin_flash bias, int32_t *sum, uint32_t outputs);
#endif

#include "groups.h"

#if defined(__riscv)
/* Sums are in s0 .. s11 and t3 .. t6, column by column; the weights of an input in t0 .. t2 and a7;
 * its activation and a product in a6 and ra, which alternate, so that the next activation is loaded
 * well before it is needed. a0 .. a3 point to weights, a4 to activations, and a5 is where a0
 * ends.
 *
 * The loop has sixteen inputs. Other multiples of four enter it where as many are left. */
/* clang-format off */
#define ADD(sum, weight, activation, product)                                                      \
    "mul " product ", " weight ", " activation "\n"                                                \
    "add " sum ", " sum ", " product "\n"
#define COLUMN(sum0, sum1, sum2, sum3, activation, product, next)                                  \
    ADD(sum0, "t0", activation, product)                                                           \
    ADD(sum1, "t1", activation, product)                                                           \
    ADD(sum2, "t2", activation, product)                                                           \
    next                                                                                           \
    ADD(sum3, "a7", activation, activation)
#define LOAD(to, input, column) "lh " to ", 8*" input "+2*" column "(a4)\n"
#define INPUT(i)                                                                                   \
    LOAD("a6", i, "0")                                                                             \
    "lb t0, " i "(a0)\n"                                                                           \
    "lb t1, " i "(a1)\n"                                                                           \
    "lb t2, " i "(a2)\n"                                                                           \
    "lb a7, " i "(a3)\n"                                                                           \
    COLUMN("s0", "s1", "s2", "s3", "a6", "ra", LOAD("ra", i, "1"))                                 \
    COLUMN("s4", "s5", "s6", "s7", "ra", "a6", LOAD("a6", i, "2"))                                 \
    COLUMN("s8", "s9", "s10", "s11", "a6", "ra", LOAD("ra", i, "3"))                               \
    COLUMN("t3", "t4", "t5", "t6", "ra", "a6", "")
#define SAVE(register, at)    "sw " register ", " at "(sp)\n.cfi_rel_offset " register ", " at "\n"
#define RESTORE(register, at) "lw " register ", " at "(sp)\n.cfi_restore " register "\n"
#define SAVED(all)                                                                                 \
    all("s0", "0") all("s1", "4") all("s2", "8") all("s3", "12") all("s4", "16") all("s5", "20")   \
    all("s6", "24") all("s7", "28") all("s8", "32") all("s9", "36") all("s10", "40")               \
    all("s11", "44") all("ra", "48")
#define STRIDE  "52(sp)"
#define IN      "56(sp)"
#define COUNT   "60(sp)"
#define BIAS    "64(sp)"
#define SUM     "68(sp)"
#define OUTPUTS "72(sp)"
#define PUT(at, sum0, sum1, sum2, sum3)                                                            \
    "sw " sum0 ", " at "+0(a6)\n"                                                                  \
    "sw " sum1 ", " at "+4(a6)\n"                                                                  \
    "sw " sum2 ", " at "+8(a6)\n"                                                                  \
    "sw " sum3 ", " at "+12(a6)\n"
#define COPY(to0, to1, to2, to3)                                                                   \
    "mv " to0 ", s0\n"                                                                             \
    "mv " to1 ", s1\n"                                                                             \
    "mv " to2 ", s2\n"                                                                             \
    "mv " to3 ", s3\n"

__asm(".pushsection .text.twini_rv32_sums, \"ax\", %progbits\n"
      ".balign 4\n"
      ".global twini_rv32_sums\n"
      ".hidden twini_rv32_sums\n"
      ".type twini_rv32_sums, %function\n"
      "twini_rv32_sums:\n"
      ".cfi_sections .debug_frame\n"
      ".cfi_startproc\n"
      "addi sp, sp, -80\n"
      ".cfi_def_cfa_offset 80\n"
      SAVED(SAVE)
      "sw a1, " STRIDE "\n"
      "sw a2, " IN "\n"
      "sw a3, " COUNT "\n"
      "sw a4, " BIAS "\n"
      "sw a5, " SUM "\n"
      "sw a6, " OUTPUTS "\n"
      /* The next four outputs, the first of which a0 points to. */
      "1:\n"
      "lw t0, " STRIDE "\n"
      "lw a4, " IN "\n"
      "lw a5, " COUNT "\n"
      "lw a6, " BIAS "\n"
      "add a1, a0, t0\n"
      "add a2, a1, t0\n"
      "add a3, a2, t0\n"
      "lw s0, 0(a6)\n"
      "lw s1, 4(a6)\n"
      "lw s2, 8(a6)\n"
      "lw s3, 12(a6)\n"
      "addi a6, a6, 16\n"
      "sw a6, " BIAS "\n"
      COPY("s4", "s5", "s6", "s7")
      COPY("s8", "s9", "s10", "s11")
      COPY("t3", "t4", "t5", "t6")
      "andi t0, a5, 12\n"
      "add a5, a5, a0\n"
      "beqz t0, 2f\n"
      /* Inputs that are not there lie before all others. */
      "addi t1, t0, -16\n"
      "add a0, a0, t1\n"
      "add a1, a1, t1\n"
      "add a2, a2, t1\n"
      "add a3, a3, t1\n"
      "slli t1, t1, 3\n"
      "add a4, a4, t1\n"
      "addi t0, t0, -8\n"
      "bltz t0, 5f\n"
      "beqz t0, 4f\n"
      "j 3f\n"
      "2:\n"
      INPUT("0") INPUT("1") INPUT("2") INPUT("3")
      "3:\n"
      INPUT("4") INPUT("5") INPUT("6") INPUT("7")
      "4:\n"
      INPUT("8") INPUT("9") INPUT("10") INPUT("11")
      "5:\n"
      INPUT("12") INPUT("13") INPUT("14") INPUT("15")
      "addi a0, a0, 16\n"
      "addi a1, a1, 16\n"
      "addi a2, a2, 16\n"
      "addi a3, a3, 16\n"
      "addi a4, a4, 128\n"
      "bne a0, a5, 2b\n"
      "lw a6, " SUM "\n"
      "lw a7, " OUTPUTS "\n"
      PUT("0", "s0", "s4", "s8", "t3")
      PUT("16", "s1", "s5", "s9", "t4")
      PUT("32", "s2", "s6", "s10", "t5")
      PUT("48", "s3", "s7", "s11", "t6")
      "addi a6, a6, 64\n"
      "addi a7, a7, -4\n"
      "sw a6, " SUM "\n"
      "sw a7, " OUTPUTS "\n"
      "mv a0, a3\n" /* where the next row begins, as there is a next one only if stride is count */
      "bnez a7, 1b\n"
      SAVED(RESTORE)
      "addi sp, sp, 80\n"
      ".cfi_def_cfa_offset 0\n"
      "ret\n"
      ".cfi_endproc\n"
      ".size twini_rv32_sums, . - twini_rv32_sums\n"
      ".popsection");
/* clang-format on */
#endif

/* In assembly, so that compilers keep to this order: otherwise they load so much ahead that
 * registers run out. */
INLINE void rv32_multiply_add(int32_t *sum, int32_t weight, int32_t feature) {
#if defined(__riscv)
    int32_t product;
    __asm volatile("mul %0, %2, %3\n\tadd %1, %1, %0"
                   : "=&r"(product), "+r"(*sum)
                   : "r"(weight), "r"(feature));
#else
    *sum += weight * feature;
#endif
}

/* As many features of two anchors fit into registers. */
#define HELD 8

static void rv32_first(const twini_layer *layer, const twini_pairs *pairs, void *out,
                       int32_t *totals) {
    group_state to = group_begin(layer, out);
    const int32_t *partial = (const int32_t *)pairs->partial;
    twin_flash a = layer->weights, b = layer->mirror;
    twin_flash end = layer->multiplier + 2 * layer->outputs;
    uint32_t row = layer->row;
    int32_t x[HELD], y[HELD];
    unsigned k;
    if (row > HELD) {
        group_first(layer, pairs, out, totals);
        return;
    }
    EACH(k, 0, HELD) {
        x[k] = k < 4 || row > 4 ? twini_i16(pairs->anchor[0] + 2 * k) : 0;
        y[k] = k < 4 || row > 4 ? twini_i16(pairs->anchor[1] + 2 * k) : 0;
    }
    /* If a row has four weights, four of the next are multiplied by zeros; after the last row of
     * either kernel, the pack goes on with at least one number of four bytes. */
    do {
        int32_t of_a = *partial++, of_b = *partial++, v = twini_i8(a), w = twini_i8(b);
        int32_t sum[COLUMNS];
        sum[0] = of_a + w * x[0];
        sum[1] = of_b + v * x[0];
        sum[2] = of_a + w * y[0];
        sum[3] = of_b + v * y[0];
        EACH(k, 1, HELD) {
            w = twini_i8(b + k);
            v = twini_i8(a + k);
            rv32_multiply_add(&sum[0], w, x[k]);
            rv32_multiply_add(&sum[1], v, x[k]);
            rv32_multiply_add(&sum[2], w, y[k]);
            rv32_multiply_add(&sum[3], v, y[k]);
        }
        a += row;
        b += row;
        group_finish(&to, sum);
    } while (to.multiplier != end);
    group_end(&to, out, totals);
}

#define KERNEL twini_kernel_rv32
#define FIRST  rv32_first

#include "group_kernel.h"

#endif
