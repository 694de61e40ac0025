"""Drawing an invoice small."""

from __future__ import annotations

import io
from decimal import Decimal

from PIL import Image, ImageDraw, ImageFont

SIZE = (180, 252)  # pixels; the page is drawn four times as large
PAGE = (720, 1008)


def draw(number: str, customer: str, total: Decimal) -> bytes:
    """A thumbnail of the invoice, as PNG."""
    page = Image.new("RGB", PAGE, "white")
    pen = ImageDraw.Draw(page)
    large, small = ImageFont.load_default(44), ImageFont.load_default(24)
    pen.rectangle((0, 0, PAGE[0], 110), fill="#1e3a5f")
    pen.text((40, 30), "Invoice", fill="white", font=large)
    pen.text((40, 150), number, fill="black", font=large)
    pen.text((40, 220), customer, fill="#444444", font=small)
    for line in range(9):
        top = 320 + line * 60
        pen.rectangle((40, top, 480 - 37 * (line % 4), top + 16), fill="#d0d0d0")
        pen.rectangle((600, top, 680, top + 16), fill="#d0d0d0")
    pen.line((40, 880, 680, 880), fill="black", width=3)
    pen.text((40, 910), "Total", fill="black", font=large)
    pen.text((680, 910), f"{total:,.2f}", fill="black", font=large, anchor="ra")
    written = io.BytesIO()
    page.resize(SIZE, Image.Resampling.LANCZOS).save(written, "PNG")
    return written.getvalue()
