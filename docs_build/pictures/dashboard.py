"""Draws `docs/images/dashboard*.png`, pictures of the dashboard on the stream of `examples/served_clicks.py`.

It needs Chromium. Run it after changing the pages: python docs_build/pictures/dashboard.py
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "images"
PICTURES = (
    ("dashboard", "light", 1280, 1400),
    ("dashboard_dark", "dark", 1280, 1400),
    ("dashboard_phone", "light", 390, 1400),
)
"""Name, colour scheme, width and height of each."""


def main() -> None:
    """Learn a stream, open its page, and save the pictures."""
    from playwright.sync_api import sync_playwright

    from taciturn.service.server import running
    from taciturn.service.service import Service
    from taciturn.store import Store

    chromium = os.environ.get("TACITURN_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        example = str(ROOT / "examples" / "served_clicks.py")
        subprocess.run([sys.executable, example, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        service = Service(Store(f"{folder}/clicks.db"))
        _, token = service.tokens.create(["admin"], label="the laptop")
        with running(service) as url, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, scheme, width, height in PICTURES:
                _save(OUT / f"{name}.png", _taken(browser, url, token, scheme, width, height))
            browser.close()


def _taken(browser: Browser, url: str, token: str, scheme: str, width: int, height: int) -> bytes:
    """A picture of the stream's page, in a session of its own."""
    chosen: dict[str, str] = {"color_scheme": scheme}
    context = browser.new_context(viewport={"width": width, "height": height}, **chosen)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/streams/ad-clicks")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Live: this page follows new releases.").wait_for()
    taken = page.screenshot()
    context.close()
    return taken


def _save(path: Path, picture: bytes) -> None:
    """Save it with a palette, which is a third of the size."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


if __name__ == "__main__":
    main()
