"""What another site makes a browser send is refused."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from deferlearn.desk.csrf import RefuseForeign
from desk_client import TestClient

COOKIE = {"cookie": "other=1; desk_session=token"}


@pytest.fixture
def client():
    async def done(request):
        return PlainTextResponse("done")

    app = Starlette(routes=[Route("/", done, methods=["GET", "POST", "DELETE"])])
    app.add_middleware(RefuseForeign, cookies=("desk_session",))
    with TestClient(app, base_url="http://desk.example") as client:
        yield client


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://desk.example"}, 403),
        ({"origin": "http://desk.example"}, 200),
        ({"origin": "https://desk.example"}, 200),  # TLS ends at the proxy
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://desk.example.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({}, 403),
    ],
)
def test_only_the_desk_itself_may_change_something_in_a_session(client, method, headers, status):
    answer = client.request(method, "/", headers={**COOKIE, **headers})
    assert answer.status_code == status


def test_a_site_cannot_log_its_visitor_in_either(client):
    assert client.post("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_programs_send_neither_cookie_nor_origin(client):
    assert client.post("/").status_code == 200


def test_reading_is_not_changing(client):
    headers = {**COOKIE, "sec-fetch-site": "cross-site"}
    assert client.get("/", headers=headers).status_code == 200
