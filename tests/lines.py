"""Files of lines that another process writes while they are read."""

from pathlib import Path


def whole_lines(path: Path) -> list[str]:
    """The lines that are there to their ends: a write that crosses a page of memory is seen by halves."""
    lines = path.read_bytes().split(b"\n")
    return [line.decode() for line in lines[:-1]]
