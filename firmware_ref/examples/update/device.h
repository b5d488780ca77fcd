/* What device.c needs of a board. */

#ifndef DEVICE_H
#define DEVICE_H

#include "twin_journal.h"

/* Three storages: the two banks, which need no `read`; their journal; and the points that the
 * device learns. */
extern const twin_storage device_banks, device_journal, device_points;

/* Called first, at each start. */
void device_begin(void);

/* Where the pack in a bank can be read: its place in flash; or where it was copied to in RAM, if
 * the processor cannot read single bytes of its flash. It stays there until the next call for this
 * bank.
 */
const void *device_bank(unsigned bank);

/* Wait for bytes of the serial line. */
void device_read(uint8_t *bytes, uint32_t size);

/* Send a word and numbers. */
void device_say(const char *word, const uint32_t *numbers, unsigned count);

/* Called for frames that device.c does not know. */
void device_other(uint8_t letter, const uint8_t *bytes, unsigned size);

/* Start again, as after a reset. */
void device_restart(void);

#endif
