// How large ledger and lake are, and what is installed.

import { Card } from "../card.js";
import { bytes, plural } from "../words.js";
import { BACK_ENDS } from "./words.js";

const { createElement: h } = globalThis.React;
const { Box, Flex, Text } = globalThis.ChakraUI;

const LAKE = "what the newest records of partitions name, with kept state; not what these replaced, nor checkpoints";

const sum = (some, field) => some.reduce((total, one) => total + one[field], 0);

function Line({ name, value, note }) {
  return h(
    Box,
    { borderTopWidth: "1px", px: 4, py: 2 },
    h(
      Flex,
      { gap: 3, justify: "space-between" },
      h(Text, { fontSize: "sm" }, name),
      h(Text, { fontSize: "sm", fontWeight: "semibold", whiteSpace: "nowrap" }, value),
    ),
    note && h(Text, { color: "fg.muted", fontSize: "xs" }, note),
  );
}

function Ledger({ ledger }) {
  const told = ledger.bytes === null;
  const kind = ledger.back_end === "sqlite" ? "its file, without its log" : "our tables, with their indexes";
  return h(Line, {
    name: `Ledger, ${BACK_ENDS[ledger.back_end] ?? ledger.back_end}, schema ${ledger.schema_version}`,
    note: told ? "its size is told to who may see the runs of all its pipelines" : kind,
    value: told ? "–" : bytes(ledger.bytes),
  });
}

export function Storage({ sizes }) {
  const lake = sizes?.counted
    ? h(Line, {
        name: `Lake, ${plural(sum(sizes.pipelines, "partitions"), "partition")}`,
        note: LAKE,
        value: bytes(sum(sizes.pipelines, "bytes")),
      })
    : h(Line, { name: "Lake", note: "is being added up from what the ledger has on record", value: "…" });
  return h(
    Card,
    { "data-testid": "storage", flex: "1 1 320px", note: "as the ledger knows it", title: "Storage" },
    (sizes?.ledgers ?? []).map((ledger, index) => h(Ledger, { key: index, ledger })),
    lake,
  );
}

export function Versions({ versions }) {
  return h(
    Card,
    { "data-testid": "versions", flex: "1 1 320px", note: "where this page comes from", title: "Versions" },
    versions.map((one) => h(Line, { key: one.package, name: one.package, value: one.version })),
  );
}
