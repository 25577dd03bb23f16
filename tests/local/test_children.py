"""The end of a child's log in a message: short, whatever the child writes."""

from pathlib import Path

from local.children import last_lines


def test_the_end_of_a_log_is_a_few_lines_of_bounded_length(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{n} {'x' * 5_000}\n" for n in range(50)))
    lines = last_lines(log, 3).splitlines()
    assert [line.split()[0] for line in lines] == ["47", "48", "49"]
    assert all(len(line) <= 201 and line.endswith("…") for line in lines)


def test_blank_lines_of_a_log_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("the cause\n\n  \nthe end\n\n\n")
    assert last_lines(log, 2) == "the cause\nthe end"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none") == ""
