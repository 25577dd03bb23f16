import pytest

from dynamoheat.units import (
    EVENTUAL,
    STRONG,
    TRANSACTIONAL,
    index_write_units,
    read_units,
    write_units,
)

KB = 1024


def test_the_guides_examples_come_out() -> None:
    assert sum(read_units(int(size * KB), STRONG) for size in (1.5, 6.5)) == 3
    assert read_units(int(40.8 * KB), STRONG) == 11
    assert read_units(1_500 * 64, STRONG) == 24
    assert sum(write_units(0, int(size * KB)) for size in (0.5, 3.5)) == 5
    assert read_units(8 * 2_000, EVENTUAL) == 2


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (8192, 2), (400 * KB, 100)]
)
def test_reads_round_up_to_4_kb(size: int, units: float) -> None:
    assert read_units(size, STRONG) == units
    assert read_units(size, EVENTUAL) == units / 2
    assert read_units(size, TRANSACTIONAL) == units * 2


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (0, 0, 1),
        (0, 1, 1),
        (0, 1024, 1),
        (0, 1025, 2),
        (3000, 100, 3),
        (100, 3000, 3),
        (2048, 0, 2),
    ],
)
def test_writes_round_the_larger_image_up_to_1_kb(before: int, after: int, units: float) -> None:
    assert write_units(before, after) == units


@pytest.mark.parametrize(
    ("before", "after", "moved", "units"),
    [
        (None, None, False, 0),
        (None, 1500, False, 2),
        (3017, None, False, 3),
        (3017, 18, False, 3),
        (18, 3020, False, 3),
        (617, 617, False, 1),
        (1517, 1517, True, 4),
        (3017, 18, True, 4),
    ],
)
def test_index_entries_cost_what_was_measured(
    before: int | None, after: int | None, moved: bool, units: float
) -> None:
    assert index_write_units(before, after, moved=moved) == units
