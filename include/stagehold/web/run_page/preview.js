// @ts-check
// What a resume would do, and why.

import { plural } from "../formats.js";
import { Card, Columns, html, Muted, Tag } from "../ui.js";
import { computes, resumeCounts } from "./run_texts.js";

const { Text } = globalThis.ChakraUI;

/** @type {Partial<Record<Api.Action, string>>} */
const PALETTES = { reuse: "success", run: "running", heal: "warning", judge: "running", blocked: "failed" };

/** @param {{ group: Api.ActionGroup }} props */
const Group = ({ group }) => html`
  <${Text}>
    <${Tag} mr="2" palette=${PALETTES[group.action] ?? "gray"}>${group.action} ${group.count.toLocaleString()}<//>
    ${`${group.reason} `}
    <${Text} as="span" color="fg.muted">(${group.partitions})<//>
  <//>`;

/** @param {Api.ActionGroup[]} groups */
const counted = (groups) => groups.reduce((sum, group) => sum + group.count, 0).toLocaleString();

/** @param {Api.StageRow} stage */
const cellsOf = ({ name, groups }) => [
  html`<${Text} fontWeight="semibold">${name}<//>`,
  counted(groups.filter((group) => group.action === "reuse")),
  counted(groups.filter((group) => computes(group.action))),
  groups
    .filter((group) => group.action !== "reuse")
    .map((group, index) => html`<${Group} key=${index} group=${group} />`),
];

/** @param {{ grid: Api.RunGrid }} props */
export function Preview({ grid }) {
  const { tasks } = grid.resume;
  const changing = grid.stages.filter((stage) => stage.groups.some((group) => group.action !== "reuse"));
  if (changing.length === 0 && tasks.length === 0) return null;
  const cleared = tasks.length ? `, clears ${plural(tasks.length, "task")} in this run` : "";
  const kept = grid.stages.length - changing.length;
  return html`
    <${Card} data-testid="preview" title=${grid.active ? "What is left of this run" : "What Resume does"}
      note="${resumeCounts(grid.resume)}${cleared}">
      <${Columns} names=${["Stage", "Reuse", "Run", "Why"]} rows=${changing.map(cellsOf)} />
      ${
        grid.resume.released &&
        html`<${Text} data-testid="released-needed" fontSize="sm" px="4" py="3">${grid.resume.released}<//>`
      }
      ${
        kept > 0 &&
        html`<${Muted} fontSize="sm" px="4" py="3">${plural(kept, "stage")} not listed: every partition is reused.<//>`
      }
    <//>`;
}
