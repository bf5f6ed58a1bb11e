// @ts-check
// The two ends of the range that is chosen, compared stage by stage.

import { fetchComparison } from "../api.js";
import { bytes } from "../formats.js";
import { useAnswer } from "../server_hooks.js";
import { Columns, FoldedCard, html, Loading, Muted, Problem } from "../ui.js";
import { workText } from "./interval_texts.js";

const { Box } = globalThis.ChakraUI;

const NAMES = ["Stage", "Rows", "Size", "Work", "Gate", "Same partitions", "Made otherwise", "Columns"];

/** @type {(one: string, other: string) => string} */
const both = (one, other) => (one === other ? one : `${one} → ${other}`);

/** @type {(one: number, other: number) => string} */
function grown(one, other) {
  const share = one > 0 && one !== other ? ` (${(((other - one) / one) * 100).toFixed(1)} %)` : "";
  return both(one.toLocaleString(), other.toLocaleString()) + share;
}

/** @param {Api.StageContents} contents */
function verdict({ judged, refused, waived }) {
  if (judged === 0) return "–";
  if (refused === 0) return "passed";
  return `${refused.toLocaleString()} of ${judged.toLocaleString()} refused${waived ? `, ${waived} waived` : ""}`;
}

/** @param {Api.StageComparison} stage */
const cellsOf = ({ stage, one, other, equal, causes, columns }) => [
  stage,
  grown(one.rows, other.rows),
  both(bytes(one.bytes), bytes(other.bytes)),
  both(workText(one.seconds), workText(other.seconds)),
  both(verdict(one), verdict(other)),
  `${equal.toLocaleString()} of ${Math.max(one.partitions, other.partitions).toLocaleString()}`,
  causes.join(", "),
  columns.join("; "),
];

/** @typedef {{ dagId: string, one: string, other: string }} Ends */

/** @param {Ends} props */
function Stages({ dagId, one, other }) {
  const { found, problem } = useAnswer(`${dagId} ${one} ${other}`, () => fetchComparison(dagId, one, other));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (found === null) return html`<${Box} p="4"><${Loading} /><//>`;
  return html`
    <${Box} data-testid="compared">
      <${Columns} names=${NAMES} rows=${found.stages.map(cellsOf)} />
      <${Muted} px="4" py="2">Of what is on record; where two values stand, the first is of ${one}.<//>
    <//>`;
}

/** @param {Ends} props */
export const Comparison = (props) => html`
  <${FoldedCard} data-testid="comparison" note="${props.one} and ${props.other}" title="Compare the two ends">
    <${Stages} ...${props} />
  <//>`;
