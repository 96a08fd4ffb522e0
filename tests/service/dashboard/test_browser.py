"""The dashboard in Chromium: five journeys, no request to another host, no console error, no serious axe violation.

Skipped where there is no Chromium: install the package `chromium`, or name one in `TACITURN_CHROMIUM`. With
`TACITURN_PICTURES`, a folder, pictures of all pages are saved there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from dashboard_sample import ADMIN, sample, with_releases
from taciturn import Ledger, Privacy
from taciturn.service.dashboard import pages
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.store import Store

CHROMIUM = os.environ.get("TACITURN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install the package chromium")

CONTRACT = """\
[privacy]
epsilon = {epsilon}
delta = 1e-6

[target]
column = "clicked"
positive = ["yes"]

[learning]
horizon = 4_000
release = 100

[columns]
age = {{ range = [0, 100] }}
price = {{ range = [0, 500] }}
device = {{ categories = ["phone", "tablet", "computer"] }}
"""
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@dataclass
class Site:
    """A running service, and a browser's view of it that counts what must not happen."""

    url: str
    service: Service
    secret: str
    context: Any
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def page(self) -> Any:
        """A new page that is watched."""
        page = self.context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._requested(request.url))
        return page

    def _requested(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.url).netloc and not url.startswith("data:"):
            self.outside.append(url)

    def log_in(self, page: Any, secret: str | None = None, to: str = "/") -> None:
        """By the form."""
        page.goto(self.url + to)
        page.get_by_label("Token").fill(secret or self.secret)
        page.get_by_role("button", name="Log in").click()

    def create(self, name: str, epsilon: float = 2.0, ledger: str | None = None) -> None:
        """A stream, by the API."""
        query = {"name": name} | ({} if ledger is None else {"ledger": ledger})
        self.post("/v1/streams", CONTRACT.format(epsilon=epsilon).encode(), "application/toml", params=query)

    def feed(self, name: str, rows: int, seed: int = 1) -> None:
        """Rows whose label follows the age."""
        rng = np.random.default_rng(seed)
        made = [
            {
                "age": int(age),
                "price": float(rng.integers(0, 500)),
                "device": str(rng.choice(["phone", "tablet", "computer"])),
                "clicked": "yes" if age + 10 * rng.normal() > 50 else "no",
            }
            for age in rng.integers(0, 100, size=rows)
        ]
        body = json.dumps({"rows": made}).encode()
        self.post(f"/v1/streams/{name}/examples", body, headers={"Idempotency-Key": uuid.uuid4().hex})

    def post(self, path: str, body: bytes, kind: str = "application/json", **more: Any) -> None:
        """A request of a program."""
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": kind, **more.pop("headers", {})}
        answer = httpx.post(self.url + path, content=body, headers=headers, timeout=30.0, **more)
        assert answer.is_success, answer.text


@pytest.fixture
def open_site(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Starts a service and a browser's context; at the end nothing outside was asked for, and nothing went wrong."""
    made: list[Site] = []
    ends: list[Any] = []

    def start(viewport: dict[str, int] = DESKTOP, scheme: str = "light") -> Site:
        address = tmp_path / f"{len(made)}.db"
        store = Store(address)
        Ledger.create(address, Privacy(3.0, 1e-6), population="customers")
        service = Service(store, tick=0.1, diagnostics=True)
        server = running(service)
        url = server.__enter__()
        ends.append(server)
        context = browser.new_context(viewport=viewport, color_scheme=scheme, device_scale_factor=1)
        _, secret = service.tokens.create(["admin"], label="the laptop", seconds=3600)
        made.append(Site(url, service, secret, context))
        return made[-1]

    yield start
    for site, server in zip(made, ends, strict=True):
        site.context.close()
        server.__exit__(None, None, None)
    for site in made:
        assert site.outside == []
        assert [text for text in site.errors if not any(re.search(known, text) for known in site.expected)] == []


def test_journey_create_a_stream(open_site: Callable[..., Site]) -> None:
    site = open_site()
    page = site.page()
    site.log_in(page)
    page.get_by_role("link", name="Create the first stream").click()
    page.get_by_label("Name").fill("ad-clicks")
    page.get_by_label("Ledger").select_option("customers")
    page.get_by_label("Contract").fill("[privacy]\nepsilon = 1.0\n")
    page.get_by_role("button", name="Create the stream").click()
    assert "columns" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Name").input_value() == "ad-clicks"
    page.get_by_label("Contract").fill(CONTRACT.format(epsilon=2.0))
    page.get_by_role("button", name="Create the stream").click()
    page.wait_for_url("**/streams/ad-clicks")
    assert "The first model comes after row 100" in page.inner_text("main")
    assert page.get_by_role("heading", level=1).inner_text().startswith("ad-clicks")
    page.get_by_role("link", name="Ledgers").click()
    page.get_by_role("link", name="customers").click()
    assert page.get_by_role("row", name=re.compile("ad-clicks.*Open")).count() == 1
    assert "Intact" in page.inner_text("main")
    site.expected.append("422")


def test_journey_feed_it_and_try_it(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.create("ad-clicks", ledger="customers")
    site.feed("ad-clicks", 1000)
    page = site.page()
    site.log_in(page, to="/streams/ad-clicks")
    page.wait_for_url("**/streams/ad-clicks")
    page.locator("#releases", has_text="10").wait_for()
    page.reload()
    assert page.locator(".plot canvas").count() >= 4
    page.get_by_role("textbox", name="age").fill("95")
    page.get_by_role("combobox", name="device").select_option("phone")
    page.get_by_role("button", name="Predict").click()
    answer = page.locator(".answer")
    assert "by release 10" in answer.inner_text()
    assert page.get_by_role("textbox", name="age").input_value() == "95"
    page.get_by_role("textbox", name="age").fill("old")
    page.get_by_role("button", name="Predict").click()
    assert page.get_by_role("textbox", name="age").get_attribute("aria-invalid") == "true"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download model.json").click()
    model = json.loads(Path(download.value.path()).read_text())
    assert (download.value.suggested_filename, model["releases"]) == ("model.json", 10)
    page.get_by_role("link", name="Operator").click()
    assert page.locator(".private-mark").inner_text().startswith("NOT PRIVATE")
    assert "Progressive accuracy" in page.inner_text("main")


def test_journey_watch_it_live(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.create("ad-clicks")
    page = site.page()
    site.log_in(page, to="/streams/ad-clicks")
    page.get_by_text("Live: this page follows new releases.").wait_for()
    site.feed("ad-clicks", 300)
    page.locator("#releases").get_by_text("3", exact=True).wait_for()
    page.get_by_text("Live: this page follows new releases.").wait_for()
    page.evaluate("document.documentElement.dataset.same = 'yes'")
    page.get_by_text("Show as a table").click()
    site.feed("ad-clicks", 500, seed=2)
    page.locator("#releases").get_by_text("8", exact=True).wait_for()
    assert page.evaluate("document.documentElement.dataset.same") == "yes"  # without loading the page again
    page.get_by_role("row", name=re.compile(r"^8 800 ")).wait_for()
    assert "Release 8, after row 800" in page.locator("[role=status].hidden").inner_text()
    length = page.evaluate("document.querySelectorAll('.plot canvas').length")
    assert length >= 4
    page.goto(f"{site.url}/streams/ad-clicks/operator")
    page.get_by_text("End it…").click()
    page.get_by_role("button", name="End ad-clicks for good").click()
    page.wait_for_url(f"{site.url}/streams/ad-clicks")
    page.locator(".chip", has_text="Closed").wait_for()  # the page loads itself again once the stream is closed


def test_journey_exhaust_a_ledger(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.create("first", epsilon=3.0, ledger="customers")
    page = site.page()
    site.log_in(page, to="/new")
    page.get_by_label("Name").fill("second")
    page.get_by_label("Ledger").select_option("customers")
    page.get_by_label("Contract").fill(CONTRACT.format(epsilon=2.0))
    page.get_by_role("button", name="Create the stream").click()
    assert "all streams together would have epsilon" in page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="Ledgers").click()
    assert page.get_by_text("Exhausted").count() == 1
    page.get_by_role("link", name="customers").click()
    assert "Nothing is left for another stream" in page.inner_text("main")
    assert page.get_by_role("row", name=re.compile("second")).count() == 0
    site.expected.append("422")


def test_journey_revoke_a_token(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.create("ad-clicks")
    page = site.page()
    site.log_in(page, to="/tokens")
    page.get_by_label("Name").fill("reports")
    page.get_by_label("Stream", exact=True).select_option("ad-clicks")
    page.get_by_label(re.compile("^read")).check()
    page.get_by_role("button", name="Create the token").click()
    secret = page.locator("#made-token").inner_text()
    other = site.context.browser.new_context()
    second = other.new_page()
    site.log_in(second, secret)
    assert second.get_by_role("heading", name="ad-clicks").count() == 1
    assert second.get_by_role("link", name="Tokens").count() == 0
    forbidden = second.goto(f"{site.url}/tokens")
    assert (forbidden.status, second.get_by_role("heading", level=1).inner_text()) == (403, "Not allowed")
    page.goto(f"{site.url}/tokens")
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke reports").click()
    page.get_by_role("row", name=re.compile("reports.*Revoked")).wait_for()
    second.goto(f"{site.url}/")
    assert second.get_by_role("heading", name="Log in").count() == 1
    site.log_in(second, secret)
    assert "was revoked" in second.get_by_role("alert").inner_text()
    other.close()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    page.goto(f"{site.url}/tokens")
    assert page.get_by_role("heading", name="Log in").count() == 1


PAGES = (
    *("/", "/streams/ad-clicks", "/streams/empty", "/ledgers", "/ledgers/customers", "/new", "/tokens"),
    *("/streams/ad-clicks/operator", "/streams/nothing"),
)


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        ("dark", 390),
        pytest.param("light", 390, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
    ],
)
def test_pages_are_accessible_and_fit(open_site: Callable[..., Site], width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    site = open_site(DESKTOP if width == 1280 else PHONE, scheme)
    site.create("ad-clicks", ledger="customers")
    site.create("empty", epsilon=0.5)
    site.feed("ad-clicks", 2500)
    page = site.page()
    page.goto(site.url)
    found = {"/login": serious(axe, page)}
    save(page, "login", width, scheme)
    site.log_in(page)
    page.get_by_text("25 releases").wait_for()
    site.expected.append("404")
    for path in PAGES:
        page.goto(site.url + path)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found[path] = serious(axe, page)
        page.reload()
        page.wait_for_timeout(100)
        save(page, path.strip("/").replace("/", "-") or "streams", width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert {path: violations for path, violations in found.items() if violations} == {}


def serious(axe: Any, page: Any) -> list[str]:
    """Serious and critical violations that axe finds on a page."""
    found = axe.run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found if one["impact"] in ("serious", "critical")
    ]


def save(page: Any, name: str, width: int, scheme: str) -> None:
    """A picture of the page, if a folder is named for them."""
    if folder := os.environ.get("TACITURN_PICTURES"):
        page.screenshot(path=f"{folder}/{name}_{width}_{scheme}.png", full_page=True)


def test_the_keyboard_reaches_everything(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.create("ad-clicks")
    page = site.page()
    site.log_in(page)
    page.wait_for_url(f"{site.url}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"New stream", "ad-clicks"} <= reached
    page.get_by_role("link", name="ad-clicks").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/streams/ad-clicks")


def test_ten_thousand_releases_are_drawn(open_site: Callable[..., Site]) -> None:
    site = open_site()
    html = pages.stream_page(ADMIN, with_releases(sample().view, 10_000))
    page = site.page()
    page.route("**/streams/many", lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8"))
    page.goto(f"{site.url}/streams/many")
    page.wait_for_function("document.documentElement.dataset.drawn")
    page.wait_for_function("document.querySelectorAll('.plot canvas').length == 5")
    site.expected.append("404|401|Failed")  # the stream that is not served has no events
