"""How Java is started for the server: directly, as Spark's own launcher would with a shell and a Java of its own.

All JARs are on the class path, and no folder before them: what Spark loads by itself is in no archive of classes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from stagehold.errors import SparkUnavailable
from stagehold.settings import Settings
from stagehold.spark.server.files import logging_file, properties_file, server_configuration
from stagehold.spark.server.jars import jar_paths

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

# Of what Spark's launcher (JavaModuleOptions) gives every Java, without what Java 17 and 21 do not know, and without
# the module for vectors: with it Java would not take its own modules from the archive.
OPENED = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *(f"java.base/java.util.{name}" for name in ("concurrent", "concurrent.atomic")),
    "java.base/jdk.internal.ref",
    *(f"java.base/sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.security.jgss/sun.security.krb5",
)
SPARKS_OPTIONS = (
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
# Folders that Spark's launcher has on the class path, for clusters and file systems of Hadoop.
CONFIGURATION_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def server_command(settings: Settings, home: Path, jars: Sequence[Path], archive_options: Sequence[str]) -> list[str]:
    configuration = server_configuration(settings)
    folders = [os.environ[name] for name in CONFIGURATION_FOLDERS if os.environ.get(name)]
    return [
        str(home / "bin" / "java"),
        "-cp",
        os.pathsep.join([*map(str, jars), *folders]),
        f"-Xmx{configuration['spark.driver.memory']}",
        *SPARKS_OPTIONS,
        f"-Dlog4j2.configurationFile={logging_file(settings)}",
        *shlex.split(configuration["spark.driver.extraJavaOptions"]),
        *archive_options,
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(properties_file(settings)),
        "--class",
        SERVER_CLASS,
        "spark-internal",
    ]


def class_path(settings: Settings) -> tuple[Path, ...]:
    """The JARs of Spark and the pinned ones, in an order that is always the same."""
    return (*sorted((spark_home() / "jars").glob("*.jar")), *jar_paths(settings))


def scala_version() -> str:
    """Which Spark's launcher has to be told, as a local cluster calls it for its executors."""
    (core,) = (spark_home() / "jars").glob("spark-core_*.jar")
    return core.name.removeprefix("spark-core_").partition("-")[0]


def spark_home() -> Path:
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise SparkUnavailable("the pyspark wheel is not installed; `pip install stagehold` installs it.")
    return Path(pyspark.origin).resolve().parent  # however it is come to, its archive of classes is one
