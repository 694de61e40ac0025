"""Ages are written by the script as the server writes them, and go on by the database's clock."""

from app import assets, wording
from tests.board.conftest import Visit
from tests.board.site import Site

SECONDS = [0, 1, 59, 60, 119, 120, 3599, 3600, 7199, 7200, 86399, 86400, 172799, 172800, 10**7]
ASK = """
async ([module, seconds]) => {
    const { written } = await import(module);
    return ['', 'exact'].map(how => seconds.map(each => written(each, how)));
}
"""
#: The page's clock is an hour behind the database's, and what was made a moment ago is as old as that by the database's.
LATE = """
const now = Date.now;
Date.now = () => now() - 3600 * 1000;
"""


def test_ages_are_written_as_the_server_writes_them(site: Site, visit: Visit) -> None:
    page = visit("/", live=False)
    rough, exact = page.evaluate(ASK, [assets.address("ticking.js"), SECONDS])
    assert rough == [wording.length(each) for each in SECONDS]
    assert exact == [wording.exact(each) for each in SECONDS]


def test_a_wrong_clock_of_the_reader_changes_nothing(site: Site, visit: Visit) -> None:
    plan = site.plan(1)
    page = visit(plan.path)
    page.add_init_script(LATE)
    page.reload()
    age = page.locator(".c-age time").first
    page.wait_for_function("() => document.querySelector('.c-age time').textContent.endsWith(' s')")
    seen = int(age.inner_text().removesuffix(" s"))
    page.wait_for_function("seen => parseInt(document.querySelector('.c-age time').textContent) > seen", arg=seen)
