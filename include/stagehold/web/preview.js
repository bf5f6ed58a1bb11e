// What a resume would do and why, and the attempts so far.

import { Card, Columns } from "./card.js";
import { clock, computes, duration, numberRanges, plural, resumeCounts } from "./words.js";

const { createElement: h } = globalThis.React;
const { Badge, Box, Text } = globalThis.ChakraUI;

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
      h(Text, { as: "span", color: "fg.muted" }, `(${numberRanges(group.partitions)})`),
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
