"""Texts that jobs may write, and that a page must show as they are, and nothing else."""

MARKUP = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&amp;"
OVERRIDE = "\u202egnp.exe\u202c \u2067 shown as it is"
LONG = "x" * 10_000
EMOJI = "👩‍👧 🛒 東京 شريك"
ALL = f"{MARKUP} {OVERRIDE} {EMOJI} ]]> --> </textarea></pre></title>"


def harmless(page: str) -> None:
    """Assert that nothing of the texts is markup on the page."""
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "</textarea></pre>" not in page
    assert "--> </textarea>" not in page
