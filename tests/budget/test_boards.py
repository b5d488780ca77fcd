"""The boards, and what their entries say."""

from twinedge.budget import all_boards, board_named


def test_the_boards_that_people_own_are_there():
    owned = "uno nano-every mega2560 leonardo nano33ble mkrzero microbit-v1 microbit-v2 nrf52840 "
    owned += "pico pico2 teensy41 bluepill nucleo-f411re nucleo-l432kc stm32h743 gd32vf103 "
    owned += "esp8266 esp32 esp32-c3 esp32-s3 pi-zero-2w pi4 pi5"
    assert len(owned.split()) == 24
    assert set(owned.split()) <= set(all_boards())


def test_every_board_says_all_there_is_to_say():
    for name, board in all_boards().items():
        assert board.name == name
        assert board.title
        assert board.chip
        assert board.source
        assert 1_000_000 <= board.clock <= 10_000_000_000
        assert 1024 <= board.free_ram <= board.ram
        assert board.free_flash is None or 16_384 <= board.free_flash <= board.flash
        assert not (board.reserved_flash or board.reserved_ram) or board.note
        low, high = board.core.cycles_per_instruction
        assert 0 < low <= high


def test_what_a_program_gets():
    uno = board_named("uno")
    assert (uno.flash, uno.free_flash, uno.free_ram) == (32_768, 32_256, 2_048)
    assert board_named("leonardo").free_flash == 28_672
    assert board_named("mega2560").free_flash == 253_952
    assert board_named("esp32").free_flash == 1_310_720
    assert board_named("esp32").free_ram == 327_680
    assert board_named("pi5").free_flash is None


def test_an_unknown_board_is_refused(complaint):
    assert "did you mean 'uno'?" in complaint(board_named, "unoo")
    assert "'twinedge budget boards' lists them" in complaint(board_named, "zx81")
