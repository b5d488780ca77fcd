/* What a port provides to the harness. */

#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Memory for exclusive use, or NULL if there is not enough. */
void *board_memory(size_t size);

/* The lowest byte that the stack may grow down to; called after board_memory. */
uint8_t *board_stack_end(void);

/* Write text to the host. */
void board_write(const char *text);

/* Stop; 0 means success. */
__attribute__((noreturn)) void board_exit(int status);

/* Start a counter that rises with the instructions executed, and read it: board.toml says how many
 * counts an instruction takes. Once started, interrupts may use the stack. */
void board_start_counter(void);
uint32_t board_counter(void);

/* Only for update.c: wait for bytes of the serial line; and start again, as after a reset. What is
 * in the section .kept stays. */
void board_read(void *bytes, size_t size);
__attribute__((noreturn)) void board_restart(void);

#endif
