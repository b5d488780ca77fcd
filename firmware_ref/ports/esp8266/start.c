/* The LX106 in QEMU: start-up, output by SIMCALL, and the cycle counter. */

#include "one_ram.h"

int main(void);
void board_start(void);
void board_fault(void);

extern uint32_t board_bss[], board_bss_end[];

enum { EXIT = 1, READ = 3, WRITE = 4, STDIN = 0, STDOUT = 1 };

static int ask_host(int what, int first, const char *second, int third) {
    register int a2 __asm("a2") = what;
    register int a3 __asm("a3") = first;
    register const char *a4 __asm("a4") = second;
    register int a5 __asm("a5") = third;
    /* The answer comes in a2, an error in a3. */
    __asm volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
    return a2;
}

void board_write(const char *text) {
    int length = 0;
    while (text[length])
        length++;
    (void)ask_host(WRITE, STDOUT, text, length);
}

void board_read(void *bytes, size_t size) {
    char *to = (char *)bytes;
    while (size) {
        int count = ask_host(READ, STDIN, to, (int)size);
        if (count <= 0)
            board_exit(3);
        to += count;
        size -= (size_t)count;
    }
}

void board_exit(int status) {
    (void)ask_host(EXIT, status, 0, 0);
    for (;;)
        ;
}

void board_start_counter(void) {
}

/* QEMU runs this core at 40 MHz, and an instruction takes 64 ns: a loop of 4,000,005 instructions
 * takes 10,240,013 counts. */
uint32_t board_counter(void) {
    uint32_t value;
    __asm volatile("rsr %0, ccount" : "=r"(value));
    return value;
}

/* Not a reset of the core, but the program begins anew: its stack, and what starts as zero. */
void board_restart(void) {
    __asm volatile("mov a1, %0\n jx %1" : : "r"(board_stack), "r"(board_start));
    for (;;)
        ;
}

void board_fault(void) {
    board_write("fault\n");
    board_exit(2);
}

void board_start(void) {
    uint32_t *to;
    for (to = board_bss; to != board_bss_end;)
        *to++ = 0;
    board_exit(main());
}

/* QEMU starts at the first of these, whatever entry an image names. Exceptions go to the others,
 * 16 bytes apart; all of them are faults, as a reset leaves interrupts off. The fault may be a
 * stack overflow, so it gets a new stack. Words are loaded from before the instruction, and the
 * rest of the program is too far away for anything but jx. */
__asm(".pushsection .start, \"ax\"\n"
      ".global board_reset\n"
      "board_reset: j reset\n"
      ".rept 7\n"
      ".balign 16\n"
      "j fault\n"
      ".endr\n"
      ".balign 4\n"
      "vectors: .long board_reset\n"
      "stack: .long board_stack\n"
      "started: .long board_start\n"
      "failed: .long board_fault\n"
      "reset: l32r a2, vectors\n"
      "wsr a2, vecbase\n"
      "l32r a1, stack\n"
      "l32r a2, started\n"
      "jx a2\n"
      "fault: l32r a1, stack\n"
      "l32r a2, failed\n"
      "jx a2\n"
      ".popsection");
