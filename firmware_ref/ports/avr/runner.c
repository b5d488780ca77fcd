/* Runs an image in simavr, on the host: runner MCU IMAGE.
 *
 * GPIOR0 takes text. A write to GPIOR2 ends the run with that code. A write to GPIOR1 latches the
 * instruction count; four reads fetch it. */

#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_io.h>
#include <stdio.h>
#include <stdlib.h>

enum { GPIOR0 = 0x3E, GPIOR1 = 0x4A, GPIOR2 = 0x4B };

static uint64_t instructions, held;

static void on_text(avr_t *avr, avr_io_addr_t address, uint8_t value, void *nothing) {
    (void)avr, (void)address, (void)nothing;
    putchar(value);
}

static void on_hold(avr_t *avr, avr_io_addr_t address, uint8_t value, void *nothing) {
    (void)avr, (void)address, (void)value, (void)nothing;
    held = instructions;
}

static uint8_t on_fetch(avr_t *avr, avr_io_addr_t address, void *nothing) {
    uint8_t low = (uint8_t)held;
    (void)avr, (void)address, (void)nothing;
    held >>= 8;
    return low;
}

static void on_exit_code(avr_t *avr, avr_io_addr_t address, uint8_t value, void *nothing) {
    (void)avr, (void)address, (void)nothing;
    exit(value);
}

int main(int count, char **words) {
    static elf_firmware_t firmware;
    avr_t *avr = count == 3 ? avr_make_mcu_by_name(words[1]) : NULL;
    int state = cpu_Running;
    if (!avr || elf_read_firmware(words[2], &firmware)) {
        fprintf(stderr, "usage: runner MCU IMAGE\n");
        return 2;
    }
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    avr->log = LOG_ERROR;
    avr_register_io_write(avr, GPIOR0, on_text, NULL);
    avr_register_io_write(avr, GPIOR1, on_hold, NULL);
    avr_register_io_read(avr, GPIOR1, on_fetch, NULL);
    avr_register_io_write(avr, GPIOR2, on_exit_code, NULL);
    while (state != cpu_Done && state != cpu_Crashed) {
        state = avr_run(avr);
        instructions++;
    }
    fprintf(stderr, "crashed\n");
    return 3;
}
