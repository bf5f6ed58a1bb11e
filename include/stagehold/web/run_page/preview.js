// @ts-check
// What a resume would do, and why.

import { plural } from "../formats.js";
import { number } from "../numbers.js";
import { meaningOf, textOf } from "../texts.js";
import { Card, Columns, html, Muted, Tag, term } from "../ui.js";
import { computes, resumeCounts } from "./run_texts.js";

const { Text } = globalThis.ChakraUI;

/** @type {Partial<Record<Api.Action, string>>} */
const PALETTES = { reuse: "success", run: "running", heal: "warning", judge: "running", blocked: "failed" };

/** @param {{ group: Api.ActionGroup }} props */
const Group = ({ group }) => html`
  <${Text}>
    <${Tag} mr="2" palette=${PALETTES[group.action] ?? "gray"} title=${meaningOf(group.action)}>
      ${`${group.action} ${number(group.count)}`}
    <//>
    ${`${group.reason} `}
    <${Text} as="span" color="fg.muted">(${group.partitions})<//>
  <//>`;

/** @param {Api.ActionGroup[]} groups */
const counted = (groups) => number(groups.reduce((sum, group) => sum + group.count, 0));

/** @param {Api.StageRow} stage */
const cellsOf = ({ name, groups }) => [
  html`<${Text} fontWeight="semibold">${name}<//>`,
  counted(groups.filter((group) => group.action === "reuse")),
  counted(groups.filter((group) => computes(group.action))),
  groups
    .filter((group) => group.action !== "reuse")
    .map((group, index) => html`<${Group} key=${index} group=${group} />`),
];

const names = () => [
  term("stage", textOf("column.stage")),
  term("reuse", textOf("column.reuse")),
  textOf("column.run"),
  textOf("column.why"),
];

/** @param {{ grid: Api.RunGrid }} props */
export function Preview({ grid }) {
  const { tasks } = grid.resume;
  const changing = grid.stages.filter((stage) => stage.groups.some((group) => group.action !== "reuse"));
  if (changing.length === 0 && tasks.length === 0) return null;
  const cleared = tasks.length ? textOf("resume.clears", { tasks: plural(tasks.length, "task") }) : "";
  const kept = grid.stages.length - changing.length;
  return html`
    <${Card} data-testid="preview" title=${grid.active ? textOf("preview.left") : textOf("preview.title")}
      note="${resumeCounts(grid.resume)}${cleared}">
      <${Columns} names=${names()}
        rows=${changing.map(cellsOf)} />
      ${
        grid.resume.released &&
        html`<${Text} data-testid="released-needed" fontSize="sm" px="4" py="3">${grid.resume.released}<//>`
      }
      ${
        kept > 0 &&
        html`<${Muted} fontSize="sm" px="4" py="3">
            ${textOf("preview.kept", { stages: plural(kept, "stage") })}
          <//>`
      }
    <//>`;
}
