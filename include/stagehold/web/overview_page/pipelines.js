// Each pipeline on a line: how it stands, its newest intervals, and how much of the newest one is there.

import { bytes, clock, lookedText, runPage } from "../words.js";
import { markText, pipelinePage, RUNS, STANDINGS, standingText, staleText, whenText } from "./words.js";

const { createElement: h } = globalThis.React;
const { Badge, Box, Flex, Link, Table, Text } = globalThis.ChakraUI;

const NAMES = ["Pipeline", "State", "Newest intervals"];

const muted = (text, rest) => h(Text, { color: "fg.muted", fontSize: "xs", ...rest }, text);

function Name({ row }) {
  const schedule = row.schedule ?? "no schedule";
  return h(
    Box,
    null,
    h(Link, { fontWeight: "semibold", href: pipelinePage(row), textDecoration: "underline" }, row.name),
    h(
      Flex,
      { align: "center", gap: 2, mt: 0.5 },
      muted(schedule),
      row.paused && h(Badge, { size: "xs", variant: "outline" }, "paused"),
    ),
  );
}

function State({ row }) {
  const { mark, palette, name, solid } = STANDINGS[row.standing];
  return h(
    Box,
    { maxW: "260px", minW: "130px" },
    h(Badge, { colorPalette: palette, variant: solid ? "solid" : "subtle" }, `${mark} ${name}`),
    muted(standingText(row), { mt: 1, overflowWrap: "anywhere" }),
  );
}

function Mark({ mark }) {
  const { palette, solid, mark: sign } = RUNS[mark.word];
  const page = runPage(mark.run_id);
  return h(
    Flex,
    {
      align: "center",
      "aria-label": markText(mark),
      as: page ? "a" : "span",
      bg: `${palette}.${solid ? "solid" : "subtle"}`,
      borderColor: `${palette}.emphasized`,
      borderRadius: "3px",
      borderWidth: "1px",
      boxSize: "18px",
      color: `${palette}.${solid ? "contrast" : "fg"}`,
      "data-word": mark.word,
      flexShrink: 0,
      fontSize: "10px",
      fontWeight: "bold",
      href: page ?? undefined,
      justify: "center",
      role: page ? undefined : "img",
      title: markText(mark),
      _hover: page ? { outline: "2px solid", outlineColor: "fg.muted" } : undefined,
    },
    sign,
  );
}

function Stale({ stale }) {
  const { first, planned_at } = stale;
  const why = first ? `${first.interval}, ${first.stage}: ${first.reason}` : "";
  return h(
    Text,
    {
      color: first ? "warning.fg" : "fg.muted",
      "data-testid": "stale",
      fontSize: "xs",
      lineClamp: 2,
      overflowWrap: "anywhere",
      title: `${why}${why && ". "}As of ${clock(planned_at)}`,
    },
    staleText(stale),
  );
}

function Marks({ row, stale }) {
  if (row.newest === null) return muted("none yet");
  const { mark } = row.newest;
  const page = runPage(mark.run_id);
  return h(
    Box,
    null,
    h(
      Flex,
      { gap: "2px" },
      row.marks.map((one) => h(Mark, { key: one.interval, mark: one })),
    ),
    h(
      Text,
      { fontSize: "xs", mt: 1, overflowWrap: "anywhere" },
      page
        ? h(Link, { "data-testid": "newest", href: page, textDecoration: "underline" }, mark.interval)
        : mark.interval,
      h(Text, { as: "span", color: "fg.muted" }, `, ${whenText(mark)}${page ? "" : ", by a command"}`),
    ),
    stale?.planned_at && h(Stale, { stale }),
    stale?.problem &&
      h(Text, { color: "fg.muted", fontSize: "xs", lineClamp: 2, title: stale.problem }, staleText(stale)),
  );
}

function Done({ newest, size }) {
  if (newest === null) return muted("none on record");
  const share = newest.partitions ? (100 * newest.done) / newest.partitions : 0;
  return h(
    Box,
    { minW: "120px" },
    h(
      Box,
      { bg: "bg.emphasized", borderRadius: "full", h: "4px", overflow: "hidden" },
      h(Box, { bg: share === 100 ? "success.solid" : "warning.solid", h: "full", style: { width: `${share}%` } }),
    ),
    muted(newest.text, { mt: 1 }),
    size && muted(`${bytes(size.bytes)} of all intervals`),
  );
}

export function Pipelines({ rows, looked, sizes, stale }) {
  const sizeOf = Object.fromEntries((sizes?.pipelines ?? []).map((one) => [one.name, one]));
  const staleOf = Object.fromEntries((stale?.pipelines ?? []).map((one) => [one.name, one]));
  const names = [...NAMES, `Partitions and data, ${lookedText(looked)}`];
  const cells = (row) => [
    h(Name, { row }),
    h(State, { row }),
    row.standing === "hidden" ? "" : h(Marks, { row, stale: staleOf[row.name] }),
    row.standing === "hidden" ? "" : h(Done, { newest: row.newest, size: sizeOf[row.name] }),
  ];
  return h(
    Table.ScrollArea,
    null,
    h(
      Table.Root,
      {
        css: {
          "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
          "& tr:last-of-type td": { borderBottomWidth: 0 },
          "& td": { overflowWrap: "break-word", whiteSpace: "normal" },
        },
        size: "sm",
      },
      h(
        Table.Header,
        null,
        h(
          Table.Row,
          null,
          names.map((name) => h(Table.ColumnHeader, { key: name, whiteSpace: "nowrap" }, name)),
        ),
      ),
      h(
        Table.Body,
        null,
        rows.map((row) =>
          h(
            Table.Row,
            { "data-standing": row.standing, "data-testid": `pipeline-${row.name}`, key: row.name },
            cells(row).map((cell, column) => h(Table.Cell, { key: names[column], verticalAlign: "top" }, cell)),
          ),
        ),
      ),
    ),
  );
}
