// @ts-check
// The two ends of the range that is chosen, compared stage by stage.

import { fetchComparison } from "../api.js";
import { bytes, lasted } from "../formats.js";
import { decimal, number } from "../numbers.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { Columns, FoldedCard, html, Loading, Muted, Problem } from "../ui.js";
import { VERDICTS } from "./interval_texts.js";

const { Box } = globalThis.ChakraUI;

const names = () => [
  textOf("column.stage"),
  textOf("fact.rows"),
  textOf("fact.size"),
  textOf("fact.work"),
  textOf("fact.gate"),
  textOf("compare.same"),
  textOf("compare.otherwise"),
  textOf("compare.columns"),
];

/** @type {(one: string, other: string) => string} */
const both = (one, other) => (one === other ? one : `${one} → ${other}`);

/** @type {(one: number, other: number) => string} */
function grown(one, other) {
  const share = one > 0 && one !== other ? ` (${decimal(((other - one) / one) * 100)} %)` : "";
  return both(number(one), number(other)) + share;
}

/** @param {Api.StageContents} contents */
function verdict({ judged, refused, waived }) {
  if (judged === 0) return "–";
  if (refused === 0) return VERDICTS.passed.text;
  const more = waived ? textOf("compare.waived", { waived }) : "";
  return textOf("compare.refused", { judged, refused }) + more;
}

/** @param {Api.StageComparison} stage */
const cellsOf = ({ stage, one, other, equal, causes, columns }) => [
  stage,
  grown(one.rows, other.rows),
  both(bytes(one.bytes), bytes(other.bytes)),
  both(lasted(one.seconds), lasted(other.seconds)),
  both(verdict(one), verdict(other)),
  textOf("turn.found", { all: Math.max(one.partitions, other.partitions), found: equal }),
  causes.join(", "),
  columns.join("; "),
];

/** @typedef {{ place: string, one: string, other: string }} Ends */

/** @param {Ends} props */
function Stages({ place, one, other }) {
  const { found, problem } = useAnswer(`${place} ${one} ${other}`, () => fetchComparison(place, one, other));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (found === null) return html`<${Box} p="4"><${Loading} /><//>`;
  return html`
    <${Box} data-testid="compared">
      <${Columns} names=${names()} rows=${found.stages.map(cellsOf)} />
      <${Muted} px="4" py="2">${textOf("compare.note", { one })}<//>
    <//>`;
}

/** @param {Ends} props */
export const Comparison = (props) => html`
  <${FoldedCard} data-testid="comparison" note=${textOf("compare.ends", props)} title=${textOf("compare.title")}>
    <${Stages} ...${props} />
  <//>`;
