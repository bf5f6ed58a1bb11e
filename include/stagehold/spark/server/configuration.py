"""How the Spark Connect server of a home is configured, and the command that starts it.

Java is started directly, as Spark's own launcher would with a shell and a Java of its own. All JARs are on the class
path, and no folder before them: what Spark loads by itself is in no archive of classes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stagehold.errors import InvalidSetting
from stagehold.extras import Extra, require
from stagehold.lake.store.location import FILES_BY, s3a_options
from stagehold.settings import Settings
from stagehold.spark.server.java import jar_paths, pinned_jars
from stagehold.spark.server.server_record import server_folder

ADDRESS = "127.0.0.1"  # never another: whoever has the token can run any code

LOOPBACK = {"spark.driver.host": ADDRESS, "spark.driver.bindAddress": ADDRESS}

# After two failures on it an executor, and after two such executors a host, gets no more work of that stage, or for a
# while of any. Not longer: a host whose disk was cleared, or the only one, has to come back by itself.
EXCLUDE_BAD_HOSTS = {
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.timeout": "5min",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "2",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.application.fetchFailure.enabled": "true",
    "spark.task.maxFailures": "6",
}

# A server that ran out of heap answers, but nothing it says can be trusted: end it, so that it is started anew.
# Each query brings code of its own. In the 48 MB that Java has with one compiler, a server of some hours spends half of
# its time throwing code out and making it again.
# Java's second compiler takes two fifths of a short run's processor time. Long ones need it where they really are hot,
# which inner loops are as soon with 50 times the usual thresholds.
USUAL = {
    "InvocationThreshold": 5000,
    "MinInvocationThreshold": 600,
    "CompileThreshold": 15000,
    "BackEdgeThreshold": 40000,
}
LATE_COMPILER = " ".join(f"-XX:Tier4{name}={50 * usual}" for name, usual in USUAL.items())
JAVA_OPTIONS = f"-XX:+ExitOnOutOfMemoryError {LATE_COMPILER} -XX:ReservedCodeCacheSize=512m -Duser.timezone=UTC"

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
# YARN's id of the application, and what it waits for.
logger.yarn.name = org.apache.spark.deploy.yarn.Client
logger.yarn.level = info
"""

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
USUAL_PORT = 15002
# Folders that Spark's launcher has on the class path, for clusters and file systems of Hadoop.
CONFIGURATION_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def write_configuration(settings: Settings) -> Path:
    """Write the folder for SPARK_CONF_DIR; with it, no configuration of the machine's own Spark has a say."""
    folder = _configuration_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"{name} {value}\n" for name, value in server_configuration(settings).items())
    properties_file(settings).write_text("".join(lines))
    logging_file(settings).write_text(LOGGING)
    return folder


def properties_file(settings: Settings) -> Path:
    return _configuration_folder(settings) / "spark-defaults.conf"


def logging_file(settings: Settings) -> Path:
    return _configuration_folder(settings) / "log4j2.properties"


def server_fingerprint(settings: Settings, pins: Mapping[str, str] | None = None) -> str:
    """Changes when a running server would have to be started anew to be what these settings ask for."""
    facts = {**server_configuration(settings), **(pins or pinned_jars())}
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def server_configuration(settings: Settings) -> Mapping[str, str]:
    folder = server_folder(settings)
    return {
        "spark.master": _master(settings),
        "spark.app.name": "stagehold",
        "spark.driver.memory": settings.spark_memory,
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {settings.spark_java_options}".strip(),
        "spark.connect.grpc.binding.address": ADDRESS,
        "spark.connect.grpc.binding.port": str(settings.spark_port or USUAL_PORT),
        # A released id is refused for as long as it is remembered, so remember more attempts than a server ever sees.
        "spark.connect.session.manager.closedSessionsTombstonesSize": "100000",
        **_jars(settings),
        # Executors elsewhere need not have our code.
        **({} if on_cluster(settings) else {"spark.python.daemon.module": "stagehold.spark.server.python_daemon"}),
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (folder / "warehouse").absolute().as_uri(),
        "spark.sql.session.timeZone": "UTC",
        FILES_BY: "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": str(settings.spark_cores * 2),
        # The next two default to sizes for thousands of files, and cost seconds per commit and per VACUUM on small
        # tables.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
        # Executors remember the uploads of their tasks, and write no file beside each that tells of it.
        "spark.hadoop.fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
        **{f"spark.hadoop.{name}": text for name, text in s3a_options(os.environ).items()},
        **(LOOPBACK if on_this_machine(settings) else {}),
        **(EXCLUDE_BAD_HOSTS if on_cluster(settings) else {}),
        **_given(settings),
    }


def workers_python(settings: Settings) -> str:
    """The Python that functions run in: this one, unless Spark's setting names another, as for executors elsewhere. One
    of an archive is named from the executor's folder, and looked for in the session's, which is below that.
    """
    given = _given(settings).get("spark.pyspark.python", sys.executable)
    return f".{given}" if given.startswith("./") else given


def require_submittable(settings: Settings) -> None:
    """Refuse what Spark would only say after a while, or never.

    :raises InvalidSetting: nobody could reach the server, or YARN would not be found.
    """
    if (mode := _given(settings).get("spark.submit.deployMode", "client")) != "client":
        allowed = "client: the server runs beside whoever starts it, and its executors in the cluster"
        raise InvalidSetting("spark.submit.deployMode of STAGEHOLD_SPARK_CONF", mode, allowed)
    folders = {name: os.environ[name] for name in CONFIGURATION_FOLDERS if os.environ.get(name)}
    if _master(settings) == "yarn":
        missing = [(name, folder) for name, folder in folders.items() if not Path(folder).is_dir()]
        if missing:
            raise InvalidSetting(*missing[0], "a folder of this machine with yarn-site.xml")
        if not folders:
            allowed = "yarn with HADOOP_CONF_DIR or YARN_CONF_DIR set to a folder with yarn-site.xml"
            raise InvalidSetting("STAGEHOLD_SPARK_MASTER", "yarn", allowed)


def _given(settings: Settings) -> Mapping[str, str]:
    """:raises InvalidSetting: it is no JSON object of texts. It may have secrets in it, so it is not shown."""
    try:
        given = json.loads(settings.spark_conf or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise InvalidSetting("STAGEHOLD_SPARK_CONF", "***", 'a JSON object of texts: {"spark.memory.fraction": "0.7"}')
    return given


def _jars(settings: Settings) -> Mapping[str, str]:
    """The users' JARs. Ours are on the server's own class path, but executors elsewhere have to be sent them, too."""
    ours = map(str, jar_paths(settings)) if on_cluster(settings) else ()
    jars = ",".join([*ours, *filter(None, settings.spark_jars.split(","))])
    return {"spark.jars": jars} if jars else {}


def on_cluster(settings: Settings) -> bool:
    """Whether work runs in executors that can be lost one by one, and not in the server itself."""
    return not re.match(r"local($|\[)", _master(settings))


def on_this_machine(settings: Settings) -> bool:
    """Whether nothing but this machine has to reach the server; executors elsewhere have to."""
    return re.match(r"local|spark://(127\.|localhost)", _master(settings)) is not None


def _master(settings: Settings) -> str:
    return settings.spark_master or f"local[{settings.spark_cores}]"


def _configuration_folder(settings: Settings) -> Path:
    return server_folder(settings) / "conf"


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
    """The version of Scala, which Spark's launcher has to be told: a local cluster calls it for its executors."""
    (core,) = (spark_home() / "jars").glob("spark-core_*.jar")
    return core.name.removeprefix("spark-core_").partition("-")[0]


def spark_home() -> Path:
    """:raises PackageMissing: nothing of pyspark is installed, or its client alone, which has no JARs."""
    require(Extra.SERVER)
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    return Path(pyspark.origin).resolve().parent  # however it is come to, its archive of classes is one
