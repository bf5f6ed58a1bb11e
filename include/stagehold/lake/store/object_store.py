"""What Spark's S3 client is told, so that it finds the store that the AWS_ variables name."""

from __future__ import annotations

from collections.abc import Mapping


def s3a_options(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Options of Hadoop's s3a, without keys: those it reads itself, from the AWS_ variables of its own process.

    Nothing secret ever has to be written to a file. An address of one's own is asked with the bucket in the path, since
    few such stores have a host name per bucket.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL", "")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    options = {"fs.s3a.endpoint.region": region} if region else {}
    if endpoint:
        options |= {"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"}
    if endpoint.startswith("http://"):
        options |= {"fs.s3a.connection.ssl.enabled": "false"}
    return options
