/* What a port gives to the harness. */

#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Memory that nobody else uses, or NULL where there is not so much. */
void *board_memory(size_t size);

/* The lowest byte that the stack may grow down to; called after board_memory. */
uint8_t *board_stack_end(void);

/* Write text to the host. */
void board_write(const char *text);

/* Stop; 0 says that all went well. */
__attribute__((noreturn)) void board_exit(int status);

/* Start a counter that goes up with the instructions executed, and read it: board.toml says how
 * many counts an instruction takes. From the start on, interrupts may use the stack. */
void board_start_counter(void);
uint32_t board_counter(void);

#endif
