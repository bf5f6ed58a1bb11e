// All that is on record of one stage for one interval.

import { bytes, clock, plural, runPage } from "../words.js";
import { amountText, gateText, madeText, recorded, shortRun, STATES, staleText, workText } from "./words.js";

const { createElement: h } = globalThis.React;
const { Box, Button, Code, Flex, Link, Text } = globalThis.ChakraUI;

const STATE_WORDS = {
  consumable: "consumable",
  held: "held",
  blocked: "blocked",
  released: "released",
  damaged: "damaged",
};

function MadeBy({ cell }) {
  return h(
    Text,
    { "data-testid": "made-by" },
    h(Text, { as: "span", color: "fg.muted", mr: 1.5 }, "Computed by"),
    cell.made_by.map(({ run_id, partitions }, index) => {
      const page = runPage(run_id);
      const name = page ? h(Link, { href: page, textDecoration: "underline" }, shortRun(run_id)) : shortRun(run_id);
      return h("span", { key: run_id }, index > 0 && ", ", name, cell.made_by.length > 1 && ` (${partitions})`);
    }),
  );
}

function Failure({ one }) {
  const tries = one.tries > 1 ? `${plural(one.tries, "task")}: ` : "";
  return h(
    Box,
    { "data-testid": "failure", px: 4, pb: 3 },
    one.cause && h(Text, { color: "failed.fg", fontWeight: "semibold" }, `${tries}${one.cause}`),
    h(
      Code,
      { display: "block", p: 2, size: "sm", variant: "surface", whiteSpace: "pre-wrap" },
      one.failure ?? "The attempt ended without a word: its process was killed or its machine was lost.",
    ),
  );
}

function factsOf(column, cell) {
  const counts = Object.entries(cell.counts).map(([state, count]) => `${count.toLocaleString()} ${STATE_WORDS[state]}`);
  const known = recorded(cell) > 0;
  return [
    ["Partitions", known ? `${amountText(cell)} (${counts.join(", ")})` : null],
    ["Made", known ? madeText(cell) : null],
    ["Rows", known ? cell.rows.toLocaleString() : null],
    ["Size", cell.bytes ? bytes(cell.bytes) : null],
    ["Work", cell.seconds ? workText(cell.seconds) : null],
    ["Recorded", cell.recorded_at && clock(cell.recorded_at)],
    ["Gate", known ? gateText(cell, column.gate) : null],
  ].filter(([, value]) => value);
}

export function Facts({ row, column, cell, stale }) {
  const page = row.run && runPage(row.run.run_id);
  return h(
    Box,
    {
      bg: "bg.subtle",
      borderTopWidth: "1px",
      "data-testid": "facts",
      fontSize: "sm",
      insetInlineStart: 0,
      position: "sticky",
      w: "100cqw",
    },
    h(
      Flex,
      { align: "baseline", columnGap: 6, px: 4, py: 3, rowGap: 1, wrap: "wrap" },
      h(
        Text,
        { w: "full" },
        h(Text, { as: "span", fontWeight: "semibold" }, `${column.name} for ${row.interval}`),
        `: ${STATES[cell.state].text}`,
        stale && `, ${staleText(stale)}`,
      ),
      factsOf(column, cell).map(([name, value]) =>
        h(Text, { key: name }, h(Text, { as: "span", color: "fg.muted", mr: 1.5 }, name), `${value}`),
      ),
      cell.made_by.length > 0 && h(MadeBy, { cell }),
      page &&
        h(Button, { asChild: true, size: "xs", variant: "outline" }, h("a", { href: page }, "Open its newest run")),
    ),
    cell.failures.map((one) => h(Failure, { key: `${one.cause} ${one.failure}`, one })),
  );
}
