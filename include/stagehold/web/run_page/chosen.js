// The facts of the partition that was clicked, and what it does not meet of its gate, which may be waived here.

import { Again } from "./again.js";
import { RunName } from "../card.js";
import { Waive } from "./waive.js";
import { bytes, clock, has, LOOKS, STANDINGS, waiverText } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Badge, Box, Button, Flex, Text } = globalThis.ChakraUI;

function ComputedBy({ cell, runId }) {
  return h(
    Text,
    { "data-testid": "computed-by" },
    h(Text, { as: "span", color: "fg.muted", mr: 1.5 }, "Computed by"),
    cell.run_id.endsWith(`/${runId}`) ? "this run" : h(RunName, { runId: cell.run_id }),
    cell.restored && ", restored from what this run begins with",
  );
}

function Facts({ stage, cell, runId }) {
  const facts = [
    ["State", LOOKS[cell.state].text],
    ["On resume", `${cell.action}: ${cell.reason}`],
    ["Rows", cell.rows?.toLocaleString()],
    ["Size", cell.bytes === null ? null : bytes(cell.bytes)],
    ["Took", cell.seconds === null ? null : `${cell.seconds.toFixed(1)} s`],
    ["Skewed", cell.skew],
    ["Attempt", cell.epoch === null ? null : `epoch ${cell.epoch}, wave ${cell.wave}`],
    ["Table version", cell.version],
    ["Recorded", cell.recorded_at && clock(cell.recorded_at)],
  ].filter(([, value]) => value !== null && value !== undefined);
  return h(
    Flex,
    { columnGap: 6, px: 4, py: 3, rowGap: 1, wrap: "wrap" },
    h(Text, { fontWeight: "semibold" }, `${stage.name}[${cell.partition}]`),
    facts.map(([name, value]) =>
      h(Text, { key: name }, h(Text, { as: "span", color: "fg.muted", mr: 1.5 }, name), `${value}`),
    ),
    cell.run_id && h(ComputedBy, { cell, runId }),
  );
}

function Unmet({ failure, mayChange, onChoose }) {
  const { palette, text } = STANDINGS[failure.standing];
  return h(
    Flex,
    { align: "start", borderTopWidth: "1px", gap: 3, px: 4, py: 2, wrap: "wrap" },
    h(Badge, { colorPalette: palette, variant: "subtle" }, text),
    h(
      Box,
      { flex: "1 1 320px" },
      h(Text, null, failure.expectation),
      failure.waiver && h(Text, { "data-testid": "waiver" }, waiverText(failure.waiver)),
    ),
    mayChange &&
      failure.standing !== "outdated" &&
      h(
        Button,
        { onClick: onChoose, size: "xs", type: "button", variant: "outline" },
        failure.waiver ? "Take back" : "Waive",
      ),
  );
}

export function Chosen({ grid, stage, cell, onWaived, onAgain, onProblem }) {
  const [chosen, setChosen] = useState(null);
  const unmet = grid.gate_failures.filter((one) => one.stage === stage.name && has(one.partitions, cell.partition));
  const done = (answer) => {
    setChosen(null);
    return onWaived(answer);
  };
  return h(
    Box,
    { bg: "bg.subtle", borderTopWidth: "1px", "data-testid": "chosen", fontSize: "sm" },
    h(Facts, { stage, cell, runId: grid.run_id }),
    unmet.map((failure) =>
      h(Unmet, {
        key: failure.expectation,
        failure,
        mayChange: grid.may_change,
        onChoose: () => setChosen({ ...failure, partitions: [[cell.partition, cell.partition]] }),
      }),
    ),
    chosen &&
      h(Waive, {
        dagId: grid.dag_id,
        runId: grid.run_id,
        key: chosen.expectation,
        failure: chosen,
        onDone: done,
        onCancel: () => setChosen(null),
      }),
    grid.may_change && !grid.active && h(Again, { grid, stage, onDone: onAgain, onProblem }),
  );
}
