// What a backfill would do: intervals by stages with how many partitions run, and why.

import { plural, timeToGo } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Box, Button, Table, Text } = globalThis.ChakraUI;

const MOST_ROWS = 15; // that are shown before somebody asks for all

const LOOKS = {
  good: { palette: "success", text: "up to date" },
  missing: { palette: "gray", text: "missing" },
  failed: { palette: "failed", text: "failed" },
  stale: { palette: "warning", text: "stale" },
  blocked: { palette: "failed", text: "blocked" },
};

const because = ({ text, count, partitions }) => `${text} (${count === 1 ? "partition" : "partitions"} ${partitions})`;

// The server gives reasons for what stays as it is, too.
const whyAgain = (cell) => cell.reasons.filter((why) => why.runs || why.judges);

export function planText(interval, cell) {
  const time = cell.seconds >= 1 ? `, about ${timeToGo(cell.seconds)}` : "";
  const runs = cell.runs ? `runs ${cell.runs.toLocaleString()} of ${plural(cell.partitions, "partition")}${time}` : "";
  const reuses = cell.reuses ? `reuses ${cell.reuses.toLocaleString()}` : "";
  const what = [runs, reuses].filter(Boolean).join(", ") || "nothing to do";
  return [`${cell.stage} for ${interval}: ${LOOKS[cell.state].text}, ${what}`, ...cell.reasons.map(because)].join(
    " · ",
  );
}

function Planned({ interval, cell }) {
  const text = planText(interval, cell);
  const { palette } = LOOKS[cell.state];
  return h(
    Box,
    {
      "aria-label": text,
      bg: cell.runs ? `${palette}.subtle` : "transparent",
      borderColor: cell.runs ? `${palette}.emphasized` : "border",
      borderRadius: "sm",
      borderWidth: "1px",
      color: cell.runs ? `${palette}.fg` : "fg.muted",
      "data-runs": cell.runs,
      "data-state": cell.state,
      "data-testid": `plan-${interval}-${cell.stage}`,
      fontSize: "13px",
      minW: "84px",
      px: 2,
      py: 1,
      role: "img",
      title: text,
      whiteSpace: "nowrap",
    },
    cell.runs
      ? `▸ ${cell.runs.toLocaleString()} ${LOOKS[cell.state].text}`
      : cell.reuses
        ? `✓ ${cell.reuses} kept`
        : "–",
  );
}

function Why({ one }) {
  if (one.problem) return h(Text, { color: "failed.fg", fontSize: "sm" }, one.problem);
  const texts = one.cells.flatMap((cell) => whyAgain(cell).map((why) => `${cell.stage}: ${why.text}`));
  const different = [...new Set(texts)];
  return h(
    Text,
    { color: "fg.muted", fontSize: "xs", lineClamp: 2, minW: "220px", title: different.join("\n") },
    different.join("; ") || "nothing to do",
  );
}

const TIGHT = {
  "& td, & th": { borderBottomWidth: 0, paddingBlock: 1 },
  "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
};
const sticky = { bg: "bg", insetInlineStart: 0, position: "sticky", zIndex: 1 };

export function Plan({ plan }) {
  const [whole, setWhole] = useState(false);
  const rows = whole ? plan.intervals : plan.intervals.slice(0, MOST_ROWS);
  const names = plan.stages.length ? plan.stages : (plan.intervals[0]?.cells.map((cell) => cell.stage) ?? []);
  const cellOf = (one, name) => one.cells.find((cell) => cell.stage === name);
  return h(
    Box,
    { borderTopWidth: "1px", "data-testid": "backfill-plan" },
    h(
      Table.ScrollArea,
      null,
      h(
        Table.Root,
        { css: TIGHT, size: "sm" },
        h(
          Table.Header,
          null,
          h(
            Table.Row,
            null,
            h(Table.ColumnHeader, sticky, "Interval"),
            names.map((name) => h(Table.ColumnHeader, { key: name }, name)),
            h(Table.ColumnHeader, null, "Why"),
          ),
        ),
        h(
          Table.Body,
          null,
          rows.map((one) =>
            h(
              Table.Row,
              { "data-testid": `planned-${one.interval}`, key: one.interval },
              h(Table.Cell, { ...sticky, fontWeight: "semibold", whiteSpace: "nowrap" }, one.interval),
              names.map((name) =>
                h(
                  Table.Cell,
                  { key: name },
                  cellOf(one, name) && h(Planned, { cell: cellOf(one, name), interval: one.interval }),
                ),
              ),
              h(Table.Cell, null, h(Why, { one })),
            ),
          ),
        ),
      ),
    ),
    rows.length < plan.intervals.length &&
      h(
        Box,
        { px: 4, py: 2 },
        h(
          Button,
          { onClick: () => setWhole(true), size: "xs", type: "button", variant: "ghost" },
          `Show all ${plan.intervals.length} intervals`,
        ),
      ),
  );
}
