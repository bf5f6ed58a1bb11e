"""Which uploads that nobody finished are found: MinIO knows no prefix of them, Amazon's store knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import URLLib3Session

from stagehold.lake.store import files
from stagehold.lake.store.files import files_at

FOLDER = "lake/_data/dead/"
KEYS = [f"{FOLDER}{number}" for number in range(5)] + ["lake/_data/dead.2/a", "other"]
PAGE = 2


class Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, body: str) -> None:
        self.body = body.encode()

    def stream(self, **_: object) -> list[bytes]:
        return [self.body]


class Store:
    """Lists uploads, a page at a time, and takes what is given up off the list."""

    def __init__(self, knows_prefix: bool) -> None:
        self.knows_prefix, self.keys, self.asked = knows_prefix, list(KEYS), list[str]()

    def send(self, _session: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        address = urlsplit(request.url)
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        body = "<ListBucketResult/>"
        if request.method == "DELETE":
            self.keys.remove(query["uploadId"])
        elif "uploads" in query:
            self.asked.append(query.get("prefix", ""))
            body = self._page(query.get("prefix", ""), query.get("key-marker", ""))
        return AWSResponse(request.url, 204 if request.method == "DELETE" else 200, {}, Raw(body))

    def _page(self, prefix: str, after: str) -> str:
        within = [key for key in sorted(self.keys) if key > after and key.startswith(prefix)]
        found = within if self.knows_prefix or not prefix else []
        page = "".join(f"<Upload><Key>{key}</Key><UploadId>{key}</UploadId></Upload>" for key in found[:PAGE])
        more = f"<NextKeyMarker>{found[PAGE - 1]}</NextKeyMarker>" if len(found) > PAGE else ""
        truncated = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>"
        return f"<ListMultipartUploadsResult>{truncated}{more}{page}</ListMultipartUploadsResult>"


@pytest.fixture
def store_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bool], Store]]:
    def made(endpoint: str, knows_prefix: bool) -> Store:
        store = Store(knows_prefix)
        given = {"REGION": "eu-west-1", "DEFAULT_REGION": "eu-west-1", "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}
        for name, text in {**given, "ENDPOINT_URL": endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", text)
        if not endpoint:
            monkeypatch.delenv("AWS_ENDPOINT_URL")
        monkeypatch.setattr(URLLib3Session, "send", lambda session, request: store.send(session, request))
        files._s3.cache_clear()
        return store

    yield made
    files._s3.cache_clear()


@pytest.mark.parametrize(
    ("endpoint", "knows_prefix"), [("http://127.0.0.1:1", False), ("http://127.0.0.1:1", True), ("", True)]
)
def test_all_uploads_of_a_folder_are_found_on_more_pages_than_one(store_at, endpoint, knows_prefix):
    store = store_at(endpoint, knows_prefix)
    files_at("s3://bucket/lake").delete("_data/dead")
    assert store.keys == ["lake/_data/dead.2/a", "other"]


@pytest.mark.parametrize(
    ("endpoint", "asked"),
    [
        ("", [FOLDER]),
        ("https://s3.eu-west-1.amazonaws.com", [FOLDER]),
        ("http://127.0.0.1:1", [FOLDER, ""]),
    ],
)
def test_only_a_store_that_is_not_amazons_is_asked_for_those_of_the_whole_bucket(store_at, endpoint, asked):
    store = store_at(endpoint, knows_prefix=True)
    store.keys = ["other"]
    files_at("s3://bucket/lake").delete("_data/dead")
    assert store.asked == asked
