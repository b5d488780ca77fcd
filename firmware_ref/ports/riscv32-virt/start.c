/* RISC-V under QEMU: start-up, output by semihosting, and the instruction counter. */

#include "one_ram.h"
#include "semihosting.h"

int main(void);
void board_start(void);

extern uint32_t board_bss[], board_bss_end[];

static void ask_host(uint32_t what, const void *argument) {
    register uint32_t a0 __asm("a0") = what;
    register const void *a1 __asm("a1") = argument;
    /* These three instructions, uncompressed and in one page, are the call. */
    __asm volatile(".balign 16\n"
                   ".option push\n"
                   ".option norvc\n"
                   "slli x0, x0, 0x1f\n"
                   "ebreak\n"
                   "srai x0, x0, 7\n"
                   ".option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
}

void board_start_counter(void) {
}

uint32_t board_counter(void) {
    uint32_t value;
    __asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop"
                   : "=r"(value));
    return value;
}

__attribute__((aligned(4))) static void on_fault(void) {
    board_write("fault\n");
    board_exit(2);
}

void board_start(void) {
    uint32_t *to;
    __asm volatile(".option push\n.option arch, +zicsr\ncsrw mtvec, %0\n.option pop"
                   :
                   : "r"(on_fault));
    for (to = board_bss; to != board_bss_end;)
        *to++ = 0;
    board_exit(main());
}

__attribute__((naked, section(".start"))) void board_reset(void) {
    __asm volatile("la sp, board_stack\n"
                   "j board_start");
}
