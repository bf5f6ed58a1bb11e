// How long each stage took and how much it made, from interval to interval.

import { fetchGrowth } from "../api.js";
import { useAnswer } from "../asking.js";
import { Card, Notice } from "../card.js";
import { coloured, Drawing, line, scales } from "../chart.js";
import { METRICS } from "./words.js";

const { createElement: h, useState } = globalThis.React;
const { Box, Button, Flex, Grid, Text } = globalThis.ChakraUI;

const MOST_DOTS = 40; // of more intervals the line alone can be read

function Dots({ points, scale, write }) {
  return points.map(
    (one, index) =>
      one.value !== null &&
      h(
        "circle",
        { cx: scale.x(index), cy: scale.y(one.value), fill: "currentColor", key: one.interval, r: 2.5 },
        h("title", null, `${one.interval}: ${write(one.value)}`),
      ),
  );
}

function StageChart({ intervals, stage, metric }) {
  const { name, write } = METRICS[metric];
  const values = stage[metric];
  const points = intervals.map((interval, index) => ({ interval, value: values[index] }));
  const known = points.filter((one) => one.value !== null);
  const newest = known.at(-1);
  // From zero, so that a small change does not look like a large one.
  const scale = scales(points.length, [0, ...values]);
  const text = known.map((one) => `${one.interval}: ${write(one.value)}`).join(". ");
  return h(
    Box,
    { "data-testid": `growth-${stage.stage}`, minW: 0 },
    h(
      Flex,
      { align: "baseline", fontSize: "sm", gap: 2, justify: "space-between" },
      h(Text, { fontWeight: "semibold", title: stage.stage, truncate: true }, stage.stage),
      newest && h(Text, { color: "fg.muted", flexShrink: 0, title: newest.interval }, write(newest.value)),
    ),
    newest
      ? h(
          Drawing,
          { intervals, scale, text: `${name} of ${stage.stage}. ${text}`, write },
          coloured(
            "brand.solid",
            line(points, "value", scale, { strokeWidth: 1.5 }),
            known.length <= MOST_DOTS && h(Dots, { points, scale, write }),
          ),
        )
      : h(Text, { color: "fg.muted", fontSize: "sm" }, "Nothing on record"),
  );
}

function Choice({ metric, onChoose }) {
  return h(
    Flex,
    { "aria-label": "What the charts show", gap: 1, role: "group" },
    Object.entries(METRICS).map(([key, { name }]) =>
      h(
        Button,
        {
          "aria-pressed": key === metric,
          key,
          onClick: () => onChoose(key),
          size: "xs",
          type: "button",
          variant: key === metric ? "subtle" : "ghost",
        },
        name,
      ),
    ),
  );
}

const NOTES = {
  seconds: "work of all partitions of an interval, in whatever run it was done",
  rows: "of an interval",
  bytes: "of an interval; unknown of what was released",
};

export function Charts({ dagId, stamp }) {
  const [metric, setMetric] = useState("seconds");
  const { found, problem } = useAnswer(`${dagId} ${stamp}`, () => fetchGrowth(dagId));
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found || found.intervals.length === 0) return null;
  return h(
    Card,
    {
      action: h(Choice, { metric, onChoose: setMetric }),
      "data-testid": "growth",
      note: NOTES[metric],
      title: `The last ${found.intervals.length} intervals`,
    },
    h(
      Grid,
      { gap: 5, pb: 4, px: 4, templateColumns: "repeat(auto-fill, minmax(260px, 1fr))" },
      found.stages.map((stage) => h(StageChart, { intervals: found.intervals, key: stage.stage, metric, stage })),
    ),
  );
}
