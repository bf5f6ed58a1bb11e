// What a resume would do and why, what went wrong, and the attempts so far.

import { clock, computes, duration, plural, ranges, resumeCounts } from "./words.js";

const { createElement: h } = globalThis.React;
const { Badge, Box, Code, Flex, Heading, Table, Text } = globalThis.ChakraUI;

function Card({ title, note, children, ...rest }) {
  return h(
    Box,
    { bg: "bg", borderRadius: "lg", borderWidth: "1px", overflow: "hidden", ...rest },
    h(
      Flex,
      { align: "baseline", columnGap: 3, px: 4, py: 3, wrap: "wrap" },
      h(Heading, { as: "h3", size: "sm" }, title),
      note && h(Text, { color: "fg.muted", fontSize: "sm" }, note),
    ),
    children,
  );
}

function Columns({ names, rows }) {
  return h(
    Table.ScrollArea,
    null,
    h(
      Table.Root,
      {
        css: {
          "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
          "& tr:last-of-type td": { borderBottomWidth: 0 },
        },
        size: "sm",
      },
      h(
        Table.Header,
        null,
        h(
          Table.Row,
          null,
          names.map((name) => h(Table.ColumnHeader, { key: name }, name)),
        ),
      ),
      h(
        Table.Body,
        null,
        rows.map((cells, index) =>
          h(
            Table.Row,
            { key: index },
            cells.map((cell, column) => h(Table.Cell, { key: column, verticalAlign: "top" }, cell)),
          ),
        ),
      ),
    ),
  );
}

const ACTION_PALETTE = { reuse: "success", run: "running", heal: "warning", judge: "running", blocked: "failed" };

function Groups({ groups }) {
  return groups.map((group, index) =>
    h(
      Text,
      { key: index },
      h(
        Badge,
        { colorPalette: ACTION_PALETTE[group.action] ?? "gray", mr: 2, variant: "subtle" },
        `${group.action} ${group.partitions.length}`,
      ),
      `${group.reason} `,
      h(Text, { as: "span", color: "fg.muted" }, `(${ranges(group.partitions)})`),
    ),
  );
}

export function Preview({ grid }) {
  const { tasks } = grid.resume;
  const changing = grid.stages.filter((stage) => stage.groups.some((group) => group.action !== "reuse"));
  if (changing.length === 0 && tasks.length === 0) return null;
  const verb = grid.active ? "What is left of this run" : "What Resume does";
  const cleared = tasks.length ? `, clears ${plural(tasks.length, "task")} in this run` : "";
  const note = `${resumeCounts(grid.resume)}${cleared}`;
  const rows = changing.map((stage) => [
    h(Text, { fontWeight: "semibold" }, stage.name),
    stage.groups.filter((group) => group.action === "reuse").reduce((sum, group) => sum + group.partitions.length, 0),
    stage.groups.filter((group) => computes(group.action)).reduce((sum, group) => sum + group.partitions.length, 0),
    h(Groups, { groups: stage.groups.filter((group) => group.action !== "reuse") }),
  ]);
  const kept = grid.stages.length - changing.length;
  return h(
    Card,
    { "data-testid": "preview", title: verb, note },
    h(Columns, { names: ["Stage", "Reuse", "Run", "Why"], rows }),
    kept > 0 &&
      h(
        Text,
        { color: "fg.muted", fontSize: "sm", px: 4, py: 3 },
        `${plural(kept, "stage")} not listed: every partition is reused.`,
      ),
  );
}

function Trace({ region, text }) {
  return h(
    Box,
    { as: "details", "data-testid": `trace-${region}`, fontSize: "sm", mt: 1 },
    h(Box, { as: "summary", color: "fg.muted", cursor: "pointer" }, "The whole trace"),
    h(
      Code,
      { display: "block", fontSize: "xs", maxH: "24em", overflow: "auto", p: 3, variant: "surface", whiteSpace: "pre" },
      text,
    ),
  );
}

export function Failures({ grid }) {
  if (grid.failures.length === 0 && grid.gate_failures.length === 0) return null;
  const rows = grid.gate_failures.map((failure) => [
    `${failure.stage}[${failure.partition}]`,
    failure.expectation,
    failure.observed,
    failure.suite,
  ]);
  return h(
    Card,
    {
      borderColor: "failed.emphasized",
      "data-testid": "failures",
      title: "What went wrong",
      note: grid.active ? "the run is going on" : null,
    },
    grid.failures.map((attempt) =>
      h(
        Box,
        { key: attempt.region, pb: 3, px: 4 },
        h(
          Text,
          { fontWeight: "semibold", mb: 1 },
          `${attempt.region}, ${attempt.epoch ? `attempt epoch ${attempt.epoch}` : "before an attempt began"}`,
        ),
        attempt.cause &&
          h(
            Text,
            { color: "fg.muted", "data-testid": `cause-${attempt.region}`, fontSize: "sm", mb: 1 },
            attempt.cause,
          ),
        h(
          Code,
          {
            display: "block",
            "data-testid": `failure-${attempt.region}`,
            fontSize: "sm",
            maxH: "16em",
            overflow: "auto",
            p: 3,
            variant: "surface",
            whiteSpace: "pre-wrap",
          },
          attempt.failure,
        ),
        attempt.trace && h(Trace, { region: attempt.region, text: attempt.trace }),
      ),
    ),
    rows.length > 0 && h(Columns, { names: ["Partition", "Expectation", "Observed", "Gate"], rows }),
  );
}

export function Attempts({ grid }) {
  if (grid.attempts.length === 0) return null;
  const rows = grid.attempts.map((attempt) => [
    attempt.region,
    attempt.epoch || "not begun",
    attempt.state,
    clock(attempt.started_at),
    attempt.ended_at ? duration(attempt.started_at, attempt.ended_at) : "",
  ]);
  return h(
    Box,
    { as: "details", bg: "bg", borderRadius: "lg", borderWidth: "1px", "data-testid": "attempts", overflow: "hidden" },
    h(
      Box,
      { as: "summary", cursor: "pointer", fontSize: "sm", fontWeight: "semibold", px: 4, py: 3 },
      plural(grid.attempts.length, "attempt"),
    ),
    h(Columns, { names: ["Region", "Epoch", "State", "Started", "Lasted"], rows }),
  );
}
