"""Server-sent events in Chromium: a page is told of changes."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, Serve

FOLLOW = """async api => {
  const titles = [];
  const source = new EventSource(`${api}/changes/stream?kinds=events`);
  await new Promise(opened => source.addEventListener("open", opened, {once: true}));
  const told = new Promise(done => source.addEventListener("message", event => {
    titles.push(JSON.parse(event.data).record.title);
    if (titles.length === 2) { source.close(); done(titles); }
  }));
  const headers = {"Content-Type": "application/json"};
  for (const title of ["First", "Second"]) {
    const body = JSON.stringify({title, start_date: "2027-06-01", end_date: "2027-06-01"});
    await fetch(`${api}/events`, {method: "POST", headers, body});
  }
  return await told;
}"""


def test_a_page_is_told_of_changes(serve: Serve, open_page: OpenPage) -> None:
    service = serve()
    watched = open_page(f"{service.root}/docs")
    assert watched.page.evaluate(FOLLOW, service.api) == ["First", "Second"]
    assert watched.problems == []
