/* CRC-32 of one more word, as in twin_words.h, with a table. */

static inline uint32_t twini_crc_bits(uint32_t crc, uint32_t word) {
    static uint32_t table[256];
    uint32_t i, k;
    if (!table[1])
        for (i = 0; i < 256; i++)
            for (table[i] = i, k = 0; k < 8; k++)
                table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
    crc ^= word;
    for (i = 0; i < 4; i++)
        crc = crc >> 8 ^ table[crc & 255];
    return crc;
}
