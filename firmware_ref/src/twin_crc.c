/* CRC-32 as in zip, bit by bit: a pack is checked once, and a table costs more than it saves. */

#include "twin_model.h"

uint32_t twin_crc(twin_flash at, uint32_t size, uint32_t zero) {
    uint32_t crc = 0xFFFFFFFFu, i;
    for (i = 0; i < size; i++) {
        uint8_t bit;
        if (i - zero >= 4) /* also where i is in front of it, as this wraps */
            crc ^= twin_u8(at + i);
        for (bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320u & (0 - (crc & 1)));
    }
    return ~crc;
}
