// Stages by partitions. Every square is a button: its title says what and why, a click keeps the facts below the grid.

import { Chosen } from "./chosen.js";
import { cellText, lookOf, LOOKS, plural } from "./words.js";

const { createElement: h, useState } = globalThis.React;
const { Badge, Box, Flex, Text } = globalThis.ChakraUI;

const PULSE = {
  "@keyframes stageholdPulse": { "50%": { opacity: 0.45 } },
  animation: "stageholdPulse 1.4s ease-in-out infinite",
};

function paint(look) {
  const { palette, solid } = LOOKS[look];
  if (solid) return { bg: `${palette}.solid`, color: `${palette}.contrast`, borderColor: `${palette}.solid` };
  const dashed = look === "waiting" || look === "released";
  return {
    bg: dashed ? "transparent" : `${palette}.subtle`,
    color: `${palette}.fg`,
    borderColor: `${palette}.emphasized`,
    borderStyle: dashed ? "dashed" : "solid",
  };
}

export function Square({ look, ...rest }) {
  return h(
    Box,
    {
      alignItems: "center",
      borderRadius: "sm",
      borderWidth: "1px",
      boxSize: "24px",
      display: "inline-flex",
      flexShrink: 0,
      fontSize: "13px",
      fontWeight: "bold",
      justifyContent: "center",
      lineHeight: 1,
      css: look === "running" ? PULSE : undefined,
      ...paint(look),
      ...rest,
    },
    LOOKS[look].mark,
  );
}

function Cell({ stage, cell, runId, chosen, onChoose }) {
  const text = cellText(stage, cell, runId);
  const look = lookOf(cell);
  return h(Square, {
    as: "button",
    type: "button",
    look,
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
    stage.consumable === total ? "success" : stage.cells.some((cell) => cell.state === "blocked") ? "failed" : "gray";
  return h(
    Box,
    { flexShrink: 0, pt: "1px", textAlign: "right", w: "72px" },
    h(
      Badge,
      {
        colorPalette: palette,
        "data-testid": `tally-${stage.name}`,
        fontVariantNumeric: "tabular-nums",
        variant: "subtle",
      },
      `${stage.consumable} / ${total}`,
    ),
  );
}

function StageLine({ stage, runId, chosen, onChoose }) {
  return h(
    Flex,
    {
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
    stage.stored
      ? h(
          Flex,
          { gap: "4px", wrap: "wrap" },
          stage.cells.map((cell) =>
            h(Cell, {
              key: cell.partition,
              stage,
              cell,
              runId,
              chosen: chosen === cell.partition,
              onChoose: () => onChoose(cell.partition),
            }),
          ),
        )
      : h(Text, { color: "fg.muted", fontSize: "sm" }, "Not stored: computed together with its reader."),
  );
}

function Legend({ stages }) {
  const counts = {};
  for (const stage of stages.filter((one) => one.stored))
    for (const cell of stage.cells) counts[lookOf(cell)] = (counts[lookOf(cell)] ?? 0) + 1;
  return h(
    Flex,
    { columnGap: 5, px: 4, py: 3, rowGap: 2, wrap: "wrap" },
    Object.keys(LOOKS)
      .filter((look) => counts[look])
      .map((look) =>
        h(
          Flex,
          { align: "center", gap: 2, key: look },
          h(Square, { "aria-hidden": true, boxSize: "18px", fontSize: "11px", look }),
          h(Text, { fontSize: "sm" }, `${plural(counts[look], "partition")} ${LOOKS[look].text}`),
        ),
      ),
  );
}

export function Grid({ grid, onWaived }) {
  const [chosen, setChosen] = useState(null);
  const toggle = (stage) => (partition) =>
    setChosen((now) => (now?.stage === stage && now.partition === partition ? null : { stage, partition }));
  const stage = chosen && grid.stages.find((one) => one.name === chosen.stage);
  const cell = stage?.cells.find((one) => one.partition === chosen.partition);
  return h(
    Box,
    { bg: "bg", borderRadius: "lg", borderWidth: "1px", "data-testid": "grid", overflow: "hidden" },
    h(Legend, { stages: grid.stages }),
    grid.stages.map((one) =>
      h(StageLine, {
        key: one.name,
        stage: one,
        runId: grid.run_id,
        chosen: chosen?.stage === one.name ? chosen.partition : null,
        onChoose: toggle(one.name),
      }),
    ),
    cell && h(Chosen, { key: `${stage.name} ${cell.partition}`, grid, stage, cell, onWaived }),
  );
}
