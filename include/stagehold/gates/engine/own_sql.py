"""Is the SQL of an expectation one query, and nothing that changes anything? Spark's own parser says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import ParseException, PySparkException

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation
    from pyspark.sql import SparkSession

BATCH = "{batch}"  # which Great Expectations replaces by a name
# Between these brackets Spark's grammar has a query and no other statement; the line's end closes a comment.
ONLY_A_QUERY = "EXPLAIN WITH asked AS (\n{}\n) SELECT * FROM asked"


def sql_problem(expectation: Expectation, spark: SparkSession) -> str | None:
    """Why Spark is not asked what the expectation has as SQL; None if it has none, or it is one query.

    It is parsed, and not carried out. Names that are not there are told when it is.
    """
    query = getattr(expectation, "unexpected_rows_query", None)
    if not isinstance(query, str):
        return None
    try:
        spark.sql(ONLY_A_QUERY.format(query.replace(BATCH, "batch")))
    except ParseException as error:
        said = str(error).strip().splitlines()[0]
        return f"unexpected_rows_query is not one query (SELECT, or WITH and SELECT) that only reads: {said}"
    except PySparkException:
        pass  # it is a query, and what is wrong with it is told when it is carried out
    return None
