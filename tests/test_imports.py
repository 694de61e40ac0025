"""Who may import whom: ordering <- workers <- app, and nobody imports app."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "ordering": {
        "workers",
        "app",
        "relevo",
        "celery",
        "kombu",
        "redis",
        "fastapi",
        "typer",
        "rich",
        "structlog",
        "httpx",
        "pydantic_settings",
    },
    "workers": {"app", "relevo", "typer", "rich", "fastapi"},
    "monitoring": {"app", "workers", "relevo", "celery", "kombu", "redis", "fastapi", "typer", "rich", "structlog", "httpx"},
    "app": {"relevo"},
}


def imported(file: Path) -> set[str]:
    """The top-level names of everything that the file imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_imports_go_one_way(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    wrong = {str(file.relative_to(ROOT)): found for file in files if (found := imported(file) & FORBIDDEN[package])}
    assert not wrong
