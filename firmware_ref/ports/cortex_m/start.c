/* Cortex-M under QEMU: start-up, output by semihosting, and SysTick as the counter. */

#include "one_ram.h"
#include "semihosting.h"

int main(void);
void board_reset(void);

extern uint32_t board_data_from[], board_data[], board_data_end[], board_bss[], board_bss_end[];

#define SYSTICK ((volatile uint32_t *)0xE000E010u) /* control, reload, current */
#define AIRCR   (*(volatile uint32_t *)0xE000ED0Cu)
#define CPACR   (*(volatile uint32_t *)0xE000ED88u)
#define FPCCR   (*(volatile uint32_t *)0xE000EF34u)

static void ask_host(uint32_t what, const void *argument) {
    register uint32_t r0 __asm("r0") = what;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory", "cc");
}

static volatile uint32_t rounds;

static void on_tick(void) {
    rounds += (uint32_t)1 << 24;
}

void board_start_counter(void) {
    SYSTICK[1] = 0xFFFFFFu;
    SYSTICK[2] = 0;
    SYSTICK[0] = 7; /* on, with interrupt, on the core clock */
}

uint32_t board_counter(void) {
    uint32_t before, now;
    do {
        before = rounds;
        now = 0xFFFFFFu - SYSTICK[2];
    } while (before != rounds);
    return before + now;
}

void board_restart(void) {
    AIRCR = 0x05FA0004u;
    for (;;)
        ;
}

static void on_fault(void) {
    board_write("fault\n");
    board_exit(2);
}

void board_reset(void) {
    uint32_t *from = board_data_from, *to;
#ifdef __ARM_FP
    CPACR |= 0xFu << 20; /* first of all: compilers use these registers for copies */
    FPCCR = 0;           /* interrupts need not save them */
    __asm volatile("dsb\n isb");
#endif
    for (to = board_data; to != board_data_end;)
        *to++ = *from++;
    for (to = board_bss; to != board_bss_end;)
        *to++ = 0;
    board_exit(main());
}

typedef void (*handler)(void);

__attribute__((section(".vectors"), used)) static const handler vectors[16] = {
    (handler)board_stack,
    board_reset,
    [2 ... 14] = on_fault,
    [15] = on_tick,
};
