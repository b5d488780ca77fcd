/* The pack and the queries, as files in the folder where this is assembled. */

#if defined(__AVR__)
    .section .progmem.data, "a", %progbits
#else
    .section .pack, "a", %progbits
#endif
    .balign 16
    .global board_pack, board_queries
board_pack:
    .incbin "pack.twin"
board_queries:
    .long end - begin /* bytes, then as many of them */
begin:
    .incbin "queries.bin"
end:

#if defined(__linux__)
    .section .note.GNU-stack, "", %progbits
#endif
