"""What has to be the same of every server for the same results: settings of Spark that change them, with the value that
each has in our sessions, and the versions of Spark and Delta, which are to be this process's own, as keys count them.

A session begins with what its server was started with. Each of these is looked at when a session is opened, and set
where the server has another: so a pipeline has the same rows on any server, and what was computed on one can be reused
on another. What a pipeline declares under `spark` stands over it, and counts in keys.

Values are Spark's own, but for the time zone. All other settings that Spark lists (`SET -v`) are classified in
`tests/spark/session/harmless_settings.txt`, each with why it changes no result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from stagehold.errors import VersionsDiffer
from stagehold.model.keys.compute_key import result_versions
from stagehold.spark.connect import spark_version

if TYPE_CHECKING:
    from pyspark.sql.connect.client import SparkConnectClient

log = logging.getLogger(__name__)

DELTA_VERSION = "SELECT java_method('io.delta.package', 'VERSION')"
NO_DELTA = "DATATYPE_MISMATCH.UNEXPECTED_CLASS_TYPE"  # what Spark says of that where the class is missing

# Servers elsewhere that were asked for Delta's version by this process: unlike Spark's, it takes a query.
_asked: set[str] = set()

NONE = "none"  # for settings that have no value unless somebody gives them one

# What a query means: its names, literals, types and operators, and which rows it takes.
_LANGUAGE: Mapping[str, str] = {
    "true": """
        ansi.enabled decimalOperations.allowPrecisionLoss groupByAliases groupByOrdinal orderByOrdinal
        crossJoin.enabled retainGroupColumns selfJoinAutoResolveAmbiguity analyzer.failAmbiguousSelfJoin
        analyzer.strictDataFrameColumnResolution analyzer.preferColumnOverLcaInArrayIndex
        lateralColumnAlias.enableImplicitResolution prioritizeOrdinalResolutionInSort.enabled
        parser.singleCharacterPipeOperator.enabled operatorPipeSyntaxEnabled variable.substitute runSQLOnFiles
        icu.caseMappings.enabled chunkBase64String.enabled readSideCharPadding collation.objectLevel.enabled
        runCollationTypeCastsBeforeAliasAssignment.enabled orderingAwareLimitOffset geospatial.enabled
        mapZipWithUsesJavaCollections listagg.allowDistinctCastWithOrder.enabled
        enforceTypeCoercionBeforeUnionDeduplication.enabled assumeAnsiFalseIfNotPersisted.enabled
        execution.sortBeforeRepartition shuffle.orderIndependentChecksum.enabled
        shuffle.orderIndependentChecksum.enableFullRetryOnMismatch
        optimizer.decorrelateSubqueryPreventConstantHoldingForCountBug.enabled
        optimizer.scalarSubqueryUseSingleJoin variant.validateUnicodeInJsonParsing
    """,
    "false": """
        ansi.doubleQuotedIdentifiers ansi.enforceReservedKeywords ansi.relationPrecedence caseSensitive
        stableDerivedColumnAlias.enabled parser.quotedRegexColumnNames parser.escapedStringLiterals path.enabled
        function.concatBinaryAsString function.eltOutputAsString function.protobufExtensions.enabled
        charAsVarchar preserveCharVarcharTypeInfo collation.schemaLevel.enabled collation.allowInMapKeys
        timeType.enabled window.segmentTree.enabled
        optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled
        optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled optimizer.metadataOnly
        variant.allowDuplicateKeys
    """,
    "UTC": "session.timeZone",
    "TIMESTAMP_LTZ": "timestampType",
    "EXCEPTION": "mapKeyDedupPolicy",
    "ANSI": "storeAssignmentPolicy",
    "second": "functionResolution.sessionOrder",
    "": "defaultPath",
    "spark_catalog": "defaultCatalog",
    "parquet": "sources.default",
    "timestampAsOf": "timeTravelTimestampKey",
    "versionAsOf": "timeTravelVersionKey",
    "100": "cteRecursionLevelLimit",
    "1000000": "cteRecursionRowLimit",
    NONE: "binaryOutputStyle",
}

# What is read out of files and tables, which of them are read, and what Spark makes of what is damaged.
_FILES: Mapping[str, str] = {
    "true": """
        files.supportSecondOffsetFormat sources.partitionColumnTypeInference.enabled
        sources.validatePartitionColumns parquet.int96AsTimestamp parquet.inferTimestampNTZ.enabled
        variant.allowReadingShredded avro.filterPushdown.enabled csv.filterPushdown.enabled
        csv.parser.columnPruning.enabled json.filterPushdown.enabled json.enablePartialResults
        json.enableExactStringParsing jsonGenerator.ignoreNullFields jsonGenerator.writeNullIfWithDefaultValue
        optimizer.enableCsvExpressionOptimization optimizer.enableJsonExpressionOptimization
        xml.variant.respectInferSchema defaultColumn.enabled defaultColumn.useNullsForMissingDefaultValues
        hive.convertMetastoreParquet hive.convertMetastoreOrc
    """,
    "false": """
        files.ignoreCorruptFiles files.ignoreMissingFiles files.ignoreInvalidPartitionPaths
        parquet.binaryAsString parquet.int96TimestampConversion parquet.fieldId.read.ignoreMissing
        parquet.mergeSchema parquet.respectSummaryFiles parquet.aggregatePushdown parquet.writeLegacyFormat
        parquet.ignoreVariantAnnotation parquet.reader.respectUnknownTypeAnnotation.enabled orc.mergeSchema
        orc.aggregatePushdown hive.convertMetastoreParquet.mergeSchema hive.convertMetastoreAsNullable
    """,
    "CORRECTED": """
        parquet.datetimeRebaseModeInRead parquet.datetimeRebaseModeInWrite parquet.int96RebaseModeInRead
        parquet.int96RebaseModeInWrite avro.datetimeRebaseModeInRead avro.datetimeRebaseModeInWrite
    """,
    "STATIC": "sources.partitionOverwriteMode",
    "2147483647": "sources.binaryFile.maxLength",
    "INT96": "parquet.outputTimestampType",
    "native": "orc.impl",
    "_corrupt_record": "columnNameOfCorruptRecord",
    "NEVER_INFER": "hive.caseSensitiveInferenceMode",
}

# What Python functions are given, and what is made of what they give back.
_PYTHON: Mapping[str, str] = {
    "true": """
        execution.pythonUDF.arrow.enabled execution.pythonUDTF.arrow.enabled
        execution.pandas.convertToArrowArraySafely execution.pyspark.binaryAsBytes
    """,
    "false": """
        execution.pythonUDF.arrow.legacy.fallbackOnUDT execution.pythonUDF.pandas.intToDecimalCoercionEnabled
        execution.pythonUDF.pandas.preferIntExtensionDtype execution.pandas.inferPandasDictAsMap
        execution.arrow.useLargeVarTypes pyspark.inferNestedDictAsStruct.enabled
        pyspark.legacy.inferArrayTypeFromFirstElement.enabled pyspark.legacy.inferMapTypeFromFirstPair.enabled
    """,
    "legacy": "execution.pandas.structHandlingMode",
    "10000": "execution.arrow.maxRecordsPerBatch",
    "67108864b": "execution.arrow.maxBytesPerBatch",
}

# What Delta reads, and that a commit which is tried again is made once.
_DELTA: Mapping[str, str] = {
    "true": """
        checkLatestSchemaOnRead timeTravel.resolveOnIdentifier.enabled timeTravel.parsing.strict
        normalizePartitionValuesOnRead write.utcTimestampPartitionValues replaceWhere.constraintCheck.enabled
        replaceWhere.dataColumns.enabled commit.idempotencyCheck.enabled
    """,
    "false": """
        changeDataFeed.timestampOutOfRange.enabled changeDataFeed.allowTimeTravelOptionsForSchema
        changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled
        updateAndMergeCastingFollowsAnsiEnabledFlag schema.autoMerge.enabled
    """,
    "0ms": "stalenessLimit",
    "AUTO": "v2.enableMode",
    "endVersion": "changeDataFeed.defaultSchemaModeForColumnMappingTable",
}

# How Spark was once, where that is another answer.
_LEGACY: Mapping[str, str] = {
    "true": """
        execution.pandas.groupedMap.assignColumnsByName followThreeValuedLogicInArrayExists
        histogramNumericPropagateInputType literal.pickMinimumPrecision replaceDatabricksSparkAvro.enabled
        sizeOfNull
    """,
    "false": """
        allowAutoGeneratedAliasForView allowHashOnMapType allowNegativeScaleOfDecimal
        allowNullComparisonResultInArraySort allowParameterlessCount allowSessionVariableInPersistedView
        allowStarWithSingleTableIdentifierInCount allowUdfParameterToShadowParameterlessFunction
        allowZeroIndexInFormatString avro.allowIncompatibleSchema bangEqualsNot castComplexTypesToString.enabled
        charVarcharAsString codingErrorAction collationAwareHashFunctions consecutiveStringLiterals.enabled
        createEmptyCollectionUsingStringType cteDuplicateAttributeNames db2.booleanMapping.enabled
        db2.numericMapping.enabled decimal.retainFractionDigitsOnTruncate disableMapKeyNormalization
        doLooseUpcast duplicateBetweenInput earlyEvalCurrentTime execution.pythonUDF.pandas.conversion.enabled
        execution.pythonUDTF.pandas.conversion.enabled exponentLiteralAsDecimal.enabled
        extraOptionsBehavior.enabled fromDayTimeString.enabled groupingIdWithAppendedUserGroupBy
        identifierClause inSubqueryNullability integerGroupingId interval.enabled javaCharsets
        json.allowEmptyString.enabled keepPartitionSpecAsStringLiteral lpadRpadAlwaysReturnString
        mssqlserver.datetimeoffsetMapping.enabled mssqlserver.numericMapping.enabled
        mysql.bitArrayMapping.enabled mysql.timestampNTZMapping.enabled negativeIndexInArrayInsert
        noCharPaddingInPredicate nullValueWrittenAsQuotedEmptyStringCsv oracle.timestampMapping.enabled
        parameterSubstitution.constantsOnly parquet.nanosAsLong parquet.returnNullStructIfAllFieldsMissing
        parseNullPartitionSpecAsStringLiteral parser.havingWithoutGroupByAsWhere pathOptionBehavior.enabled
        percentileDiscCalculation persistentCatalogFirst postgres.datetimeMapping.enabled
        readFileSourceTableCacheIgnoreOptions respectNullabilityInTextDatasetConversion
        scalarSubqueryAllowGroupByNonEqualityCorrelatedPredicate scalarSubqueryCountBugBehavior
        setopsPrecedence.enabled statisticalAggregate storeAnalyzedPlanForView truncateForEmptyRegexSplit
        typeCoercion.datetimeToString.enabled useCurrentConfigsForView useLegacyXMLParser
    """,
    "CORRECTED": """
        ctePrecedencePolicy timeParserPolicy
    """,
    NONE: """
        csv.enableDateTimeParsingFallback json.enableDateTimeParsingFallback nullInEmptyListBehavior
    """,
}


def _named(prefix: str, names_by_value: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((f"{prefix}{name}", value) for value, names in names_by_value.items() for name in names.split())


RESULT_SETTINGS: Mapping[str, str] = dict(
    [
        *(pair for table in (_LANGUAGE, _FILES, _PYTHON) for pair in _named("spark.sql.", table)),
        *_named("spark.databricks.delta.", _DELTA),
        *_named("spark.sql.legacy.", _LEGACY),
    ]
)


def set_for_results(client: SparkConnectClient, others: Mapping[str, str]) -> None:
    """Have a session give the results that all our sessions give, and have it ``others``; two calls, as a rule.

    A setting that the server does not know is left alone: it has Spark's own value as soon as it is known.
    """
    differing = differing_settings(_told(client, RESULT_SETTINGS))
    if differing:
        log.info("settings of the server that change results, and ours: %s", _as_text(differing))
    _unset(client, [name for name, (_, ours) in differing.items() if ours == NONE])
    set_settings(client, {**{name: ours for name, (_, ours) in differing.items() if ours != NONE}, **others})


def differing_settings(told: Mapping[str, str | None]) -> dict[str, tuple[str, str]]:
    """The settings that a server has otherwise: by name, its value and ours."""
    known = {name: value for name, value in told.items() if value is not None}
    return {name: (value, RESULT_SETTINGS[name]) for name, value in known.items() if value != RESULT_SETTINGS[name]}


def set_settings(client: SparkConnectClient, settings: Mapping[str, str]) -> None:
    """Set them all in one call. What Spark says of settings that are old is for those who choose them, so it is passed
    over.
    """
    from pyspark.sql.connect.proto import ConfigRequest, KeyValue

    pairs = [KeyValue(key=name, value=value) for name, value in settings.items()]
    client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))


def _told(client: SparkConnectClient, names: Iterable[str]) -> dict[str, str | None]:
    from pyspark.sql.connect.proto import ConfigRequest

    operation = ConfigRequest.Operation(get_option=ConfigRequest.GetOption(keys=names))
    return dict(client.config(operation).pairs)


def _unset(client: SparkConnectClient, names: Iterable[str]) -> None:
    from pyspark.sql.connect.proto import ConfigRequest

    if keys := list(names):
        client.config(ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=keys)))


def _as_text(differing: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {theirs}, {ours}" for name, (theirs, ours) in sorted(differing.items()))


def require_versions(client: SparkConnectClient, remote: str) -> None:
    """Ask the server that ``client`` has a session with; ``remote`` is its address where we did not start it.

    A server without Delta is let pass: it reads and writes none.

    :raises VersionsDiffer: it has other versions than this process.
    """
    _require("Spark", spark_version(client), "pyspark", remote)
    if remote and remote not in _asked:
        if delta := _delta_version(client):
            _require("Delta Lake", delta, "delta-spark", remote)
        _asked.add(remote)


def _require(engine: str, of_server: str, package: str, remote: str) -> None:
    own = result_versions()[package]
    if of_server != own:
        raise VersionsDiffer(engine, of_server=of_server, own=own, package=package, remote=bool(remote))


def _delta_version(client: SparkConnectClient) -> str | None:
    from pyspark.errors import AnalysisException
    from pyspark.sql.connect.plan import SQL

    try:
        table, *_ = client.to_table(SQL(DELTA_VERSION).to_proto(client), {})
    except AnalysisException as error:
        if error.getCondition() != NO_DELTA:
            log.warning("the version of the server's Delta is unknown: %s", str(error).partition("\n")[0])
        return None
    return str(table.column(0)[0].as_py())
