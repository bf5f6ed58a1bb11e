"""A folder and a bucket behave the same."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError
from botocore.httpsession import URLLib3Session
from tests.foreign_programs import listening
from tests.lake.slow_store import counted_store
from tests.object_store import moto_store, new_lake, way_by_role

from stagehold.lake.store import files
from stagehold.lake.store.files import Files, ObjectFiles, files_at


class Lake:
    """Writes what the lake's own code only lists, reads and deletes."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def write(self, path: str, content: bytes = b"x") -> None:
        if self.uri.startswith("s3://"):
            bucket, _, prefix = self.uri.removeprefix("s3://").partition("/")
            boto3.client("s3").put_object(Bucket=bucket, Key=f"{prefix}/{path}", Body=content)
        else:
            Path(self.uri, path).parent.mkdir(parents=True, exist_ok=True)
            Path(self.uri, path).write_bytes(content)

    @property
    def files(self) -> Files:
        return files_at(self.uri)


@pytest.fixture(params=["tmp_path", "s3_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    return Lake(str(request.getfixturevalue(request.param)))


def test_files_are_listed_at_any_depth_with_their_sizes(lake):
    lake.write("_data/one/a", b"12")
    lake.write("_data/one/deep/er/b", b"123")
    lake.write("_data/other/c")
    assert lake.files.sizes("_data/one") == {"_data/one/a": 2, "_data/one/deep/er/b": 3}


def test_a_folder_whose_name_begins_like_another_is_another(lake):
    lake.write("_data/run.1/a")
    lake.write("_data/run.12/b")
    assert list(lake.files.sizes("_data/run.1")) == ["_data/run.1/a"]
    lake.files.delete("_data/run.1")
    assert list(lake.files.sizes("_data")) == ["_data/run.12/b"]


def test_what_is_not_there_has_no_files(lake):
    assert lake.files.sizes("_data") == {}
    lake.files.delete("_data")


def test_a_file_that_vanishes_while_its_folder_is_listed_is_not_there(tmp_path):
    """As delta-rs's drafts of commits do. A link to nothing is a name that the listing finds and `stat` does not."""
    lake = Lake(str(tmp_path))
    lake.write("_delta_log/0.json")
    Path(tmp_path, "_delta_log", "1.json#1").symlink_to("nowhere")
    assert lake.files.sizes("_delta_log") == {"_delta_log/0.json": 1}


@pytest.mark.parametrize(("length", "read"), [(2, b"89"), (10, b"0123456789"), (99, b"0123456789")])
def test_the_tail_of_a_file_is_read(lake, length, read):
    lake.write("f", b"0123456789")
    assert lake.files.tail("f", length) == read
    assert lake.files.read("f") == b"0123456789"


def test_a_file_that_is_not_there_cannot_be_read(lake):
    with pytest.raises(FileNotFoundError, match="records/one"):
        lake.files.read("records/one")


def test_a_file_is_created_once(lake):
    assert lake.files.create("records/one", b"first")
    assert not lake.files.create("records/one", b"second")
    assert lake.files.read("records/one") == b"first"
    assert list(lake.files.sizes("records")) == ["records/one"]


def test_of_many_who_create_a_file_at_once_one_does(lake):
    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(len(contents)) as pool:
        made = list(pool.map(partial(lake.files.create, "records/one"), contents))
    assert sum(made) == 1
    assert lake.files.read("records/one") == contents[made.index(True)]


@pytest.mark.parametrize("there", [False, True], ids=["nothing is there", "another call was first"])
def test_who_creates_a_file_and_does_not_hear_of_it_knows_whether_it_did(s3_lake, there, monkeypatch):
    lake, sent, send = Lake(s3_lake), [], URLLib3Session.send
    if there:
        assert lake.files.create("records/one", b"same")

    def send_and_lose_the_first_answer(session: URLLib3Session, request: AWSPreparedRequest) -> object:
        answer = send(session, request)
        sent.append(request.method)
        if sent == ["PUT"]:
            raise ConnectionClosedError(endpoint_url=request.url)
        return answer

    monkeypatch.setattr(URLLib3Session, "send", send_and_lose_the_first_answer)
    assert lake.files.create("records/one", b"same") is not there
    assert sent == ["PUT", "PUT", "HEAD"]
    assert not lake.files.create("records/one", b"same")
    assert lake.files.read("records/one") == b"same"


def test_named_files_are_removed_and_no_others(lake):
    for path in ("a", "parts/a", "parts/ab", "parts/b"):
        lake.write(path)
    lake.files.remove(["parts/a", "a", "parts/never there"])
    assert set(lake.files.sizes("parts")) == {"parts/ab", "parts/b"}
    assert set(lake.files.facts("")) == {"parts/ab", "parts/b"}
    lake.files.remove([])


def test_more_files_than_one_request_takes_are_all_deleted(s3_lake):
    lake = Lake(s3_lake)
    for number in range(8):
        lake.write(f"_data/{number}")
    ObjectFiles(s3_lake, keys_per_delete=3).delete("_data")
    assert lake.files.sizes("_data") == {}


def test_uploads_that_nobody_finished_go_with_their_folder(s3_lake):
    client, (bucket, _, prefix) = boto3.client("s3"), s3_lake.removeprefix("s3://").partition("/")
    for path in ("_data/dead/1/a", "_data/dead/1/b", "_data/dead.2/c", "_data/alive/d"):
        client.create_multipart_upload(Bucket=bucket, Key=f"{prefix}/{path}")
    files_at(s3_lake).delete("_data/dead")
    left = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert {upload["Key"].removeprefix(f"{prefix}/") for upload in left} == {"_data/dead.2/c", "_data/alive/d"}


@pytest.mark.parametrize("path", ["file/below", "file/deep/below"])
def test_a_file_that_stands_where_a_folder_should_be_is_told_as_one(tmp_path, path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        files_at(str(tmp_path)).create(path, b"x")


@contextmanager
def failing_store(
    status: int, code: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, list[float]]]:
    """A store that fails so many requests before it answers; and how long was waited before each other try.

    :param status: of those that fail; 0 if the connection is closed instead.
    """
    tries, waits = [], list[float]()

    def answer(connection: socket.socket) -> None:
        connection.recv(10_000)
        tries.append(1)
        failed = len(tries) <= times
        if failed and not status:
            return
        body = f"<Error><Code>{code}</Code><Message>wait</Message></Error>" if failed else "rows"
        line = f"{status} Failed" if failed else "200 OK"
        text = f"HTTP/1.1 {line}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        connection.sendall(text.encode())

    with listening(answer) as port:
        for name, text in {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "REGION": "x", "DEFAULT_REGION": "x"}.items():
            monkeypatch.setenv(f"AWS_{name}", text)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tester")
        monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
        files._s3.cache_clear()
        yield "s3://bucket/lake", waits
        files._s3.cache_clear()


FAILURES = [
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (502, "BadGateway"),
    (400, "RequestTimeout"),
    (0, "the connection is closed"),
]
LONGEST_WAITS = (0.5, 1, 2, 4, 8, 16, 20, 20)


@pytest.mark.parametrize(("status", "code"), FAILURES)
def test_a_store_that_fails_for_a_while_is_waited_for(status, code, monkeypatch):
    with failing_store(status, code, 8, monkeypatch) as (uri, waits):
        assert files_at(uri).read("file") == b"rows"
    assert len(waits) == 8
    assert all(longest / 2 <= wait <= longest for wait, longest in zip(waits, LONGEST_WAITS, strict=True))


@pytest.mark.parametrize(("status", "code"), FAILURES)
def test_a_store_that_goes_on_failing_is_given_up_after_about_a_minute(status, code, monkeypatch):
    """Each call for itself: what calls before it have spent makes nobody give up sooner."""
    with failing_store(status, code, 100, monkeypatch) as (uri, waits):
        for _ in range(6):
            waits.clear()
            with pytest.raises((ClientError, HTTPClientError)):
                files_at(uri).read("file")
            assert len(waits) == 8
            assert 35 < sum(waits) < 75


def test_what_is_refused_is_not_asked_again(monkeypatch):
    with failing_store(403, "AccessDenied", 100, monkeypatch) as (uri, waits), pytest.raises(Exception, match="Denied"):
        files_at(uri).read("file")
    assert waits == []


def test_keys_that_ran_out_are_told_at_once_where_nobody_renews_them(monkeypatch):
    with (
        failing_store(400, "ExpiredToken", 100, monkeypatch) as (uri, waits),
        pytest.raises(Exception, match="Expired"),
    ):
        files_at(uri).read("file")
    assert waits == []


def test_keys_that_ran_out_are_waited_for_where_a_role_gives_others(tmp_path, monkeypatch):
    with moto_store() as address, counted_store(address) as proxy, ThreadPoolExecutor() as beside:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        for name, text in way_by_role(proxy.address, tmp_path / "token").items():
            monkeypatch.setenv(name, text)
        lake = files_at(new_lake())
        hit = beside.submit(proxy.expire, 2)
        while not proxy.expired:
            time.sleep(0.01)
        assert lake.create("file", b"rows")
        assert lake.read("file") == b"rows"
        assert hit.result()
    files._s3.cache_clear()


def test_a_store_that_throttles_is_asked_again_and_less_often(monkeypatch):
    with failing_store(503, "SlowDown", 2, monkeypatch) as (uri, waits):
        assert files_at(uri).read("file") == b"rows"
    assert len(waits) == 2
