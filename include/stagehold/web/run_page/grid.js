// Stages by partitions. Every square is a button: its title says what and why, a click keeps the facts below the grid.
// A stage with very many has a strip in place of squares, whose parts open.

import { Chosen } from "./chosen.js";
import { Square } from "./square.js";
import { Strip } from "./strip.js";
import { cellText, countOf, LOOKS, paceText, plural } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Badge, Box, Flex, Text } = globalThis.ChakraUI;

export function Cell({ stage, cell, runId, chosen, onChoose }) {
  const text = cellText(stage, cell, runId);
  return h(Square, {
    as: "button",
    type: "button",
    look: cell.state,
    title: text,
    "aria-label": text,
    "aria-pressed": chosen,
    cursor: "pointer",
    onClick: onChoose,
    outline: chosen ? "2px solid" : undefined,
    outlineColor: "fg",
    outlineOffset: "1px",
    "data-testid": `cell-${stage.name}-${cell.partition}`,
    "data-state": cell.state,
    "data-action": cell.action,
    "data-restored": cell.restored,
    "data-waived": cell.waived,
  });
}

function StageName({ stage }) {
  const region = stage.region === stage.name ? null : `region ${stage.region}`;
  const notes = [region, stage.gate && `gate ${stage.gate}`, stage.table].filter(Boolean).join(" · ");
  return h(
    Box,
    { flexShrink: 0, minW: 0, pt: "1px", w: "220px" },
    h(Text, { fontWeight: "semibold", title: stage.job, truncate: true }, stage.name),
    notes && h(Text, { color: "fg.muted", fontSize: "xs", title: notes, truncate: true }, notes),
  );
}

function Tally({ stage }) {
  const total = stage.partitions;
  const palette =
    stage.consumable === total ? "success" : stage.counts.blocked || stage.counts.failed ? "failed" : "gray";
  return h(
    Box,
    { flexShrink: 0, pt: "1px", textAlign: "right", minW: "72px" },
    h(
      Badge,
      {
        colorPalette: palette,
        "data-testid": `tally-${stage.name}`,
        fontVariantNumeric: "tabular-nums",
        variant: "subtle",
      },
      `${stage.consumable.toLocaleString()} / ${total.toLocaleString()}`,
    ),
  );
}

function Cells({ stage, cells, runId, chosen, onChoose }) {
  return h(
    Flex,
    { gap: "4px", wrap: "wrap" },
    cells.map((cell) =>
      h(Cell, {
        key: cell.partition,
        stage,
        cell,
        runId,
        chosen: chosen === cell.partition,
        onChoose: () => onChoose(cell),
      }),
    ),
  );
}

function Partitions({ grid, stage, chosen, onChoose }) {
  if (!stage.stored)
    return h(Text, { color: "fg.muted", fontSize: "sm" }, "Not stored: computed together with its reader.");
  const shown = { chosen, onChoose, runId: grid.run_id, stage };
  return h(
    Box,
    { flex: "1 1 200px", minW: 0 },
    stage.strip.length > 0
      ? h(Strip, { grid, stage, children: (cells) => h(Cells, { ...shown, cells }) })
      : h(Cells, { ...shown, cells: stage.cells }),
    stage.pace &&
      h(Text, { color: "fg.muted", "data-testid": `pace-${stage.name}`, fontSize: "xs", mt: 1 }, paceText(stage.pace)),
  );
}

function StageLine({ grid, stage, chosen, onChoose }) {
  return h(
    Flex,
    {
      wrap: { base: "wrap", md: "nowrap" },
      "aria-label": `${stage.name}: ${stage.consumable} of ${stage.partitions} consumable`,
      borderTopWidth: "1px",
      gap: 4,
      px: 4,
      py: 2.5,
      role: "group",
      "data-testid": `stage-${stage.name}`,
    },
    h(StageName, { stage }),
    stage.stored ? h(Tally, { stage }) : h(Box, { w: "72px" }),
    h(Partitions, { grid, stage, chosen, onChoose }),
  );
}

function Legend({ grid }) {
  const stored = { stages: grid.stages.filter((one) => one.stored) };
  return h(
    Flex,
    { columnGap: 5, px: 4, py: 3, rowGap: 2, wrap: "wrap" },
    Object.keys(LOOKS)
      .map((look) => [look, countOf(stored, look)])
      .filter(([, count]) => count > 0)
      .map(([look, count]) =>
        h(
          Flex,
          { align: "center", gap: 2, key: look },
          h(Square, { "aria-hidden": true, boxSize: "18px", fontSize: "11px", look }),
          h(Text, { fontSize: "sm" }, `${plural(count, "partition")} ${LOOKS[look].text}`),
        ),
      ),
  );
}

export function Grid({ grid, onWaived, onAgain, onProblem }) {
  const [chosen, setChosen] = useState(null);
  const toggle = (stage) => (cell) =>
    setChosen((now) => (now?.stage === stage && now.cell.partition === cell.partition ? null : { stage, cell }));
  const stage = chosen && grid.stages.find((one) => one.name === chosen.stage);
  // Of a strip the facts stay as they were when its part was opened.
  const cell = stage && (stage.cells.find((one) => one.partition === chosen.cell.partition) ?? chosen.cell);
  return h(
    Box,
    { bg: "bg", borderRadius: "lg", borderWidth: "1px", "data-testid": "grid", overflow: "hidden" },
    h(Legend, { grid }),
    grid.stages.map((one) =>
      h(StageLine, {
        key: one.name,
        grid,
        stage: one,
        chosen: chosen?.stage === one.name ? chosen.cell.partition : null,
        onChoose: toggle(one.name),
      }),
    ),
    cell && h(Chosen, { key: `${stage.name} ${cell.partition}`, grid, stage, cell, onWaived, onAgain, onProblem }),
  );
}
