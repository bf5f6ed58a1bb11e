// What a resume would do, and why.

import { Card, Columns } from "../card.js";
import { computes, plural, resumeCounts } from "../words.js";

const { createElement: h } = globalThis.React;
const { Badge, Text } = globalThis.ChakraUI;

const ACTION_PALETTE = { reuse: "success", run: "running", heal: "warning", judge: "running", blocked: "failed" };

function Groups({ groups }) {
  return groups.map((group, index) =>
    h(
      Text,
      { key: index },
      h(
        Badge,
        { colorPalette: ACTION_PALETTE[group.action] ?? "gray", mr: 2, variant: "subtle" },
        `${group.action} ${group.count.toLocaleString()}`,
      ),
      `${group.reason} `,
      h(Text, { as: "span", color: "fg.muted" }, `(${group.partitions})`),
    ),
  );
}

const counted = (groups) => groups.reduce((sum, group) => sum + group.count, 0).toLocaleString();

export function Preview({ grid }) {
  const { tasks } = grid.resume;
  const changing = grid.stages.filter((stage) => stage.groups.some((group) => group.action !== "reuse"));
  if (changing.length === 0 && tasks.length === 0) return null;
  const verb = grid.active ? "What is left of this run" : "What Resume does";
  const cleared = tasks.length ? `, clears ${plural(tasks.length, "task")} in this run` : "";
  const note = `${resumeCounts(grid.resume)}${cleared}`;
  const rows = changing.map((stage) => [
    h(Text, { fontWeight: "semibold" }, stage.name),
    counted(stage.groups.filter((group) => group.action === "reuse")),
    counted(stage.groups.filter((group) => computes(group.action))),
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
