"""Short files: the project's own audit refuses one of more than 300 lines."""

import subprocess
import sys
from pathlib import Path


def test_no_file_has_more_than_300_lines(tmp_path: Path) -> None:
    script = Path(__file__).parent.parent / "scripts" / "count_lines.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "lines.json")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
