// @ts-check
// What happened to the run, from the ledger or, when that has forgotten it, from the archive in the lake.

import { fetchRunHistory } from "../api.js";
import { bareClock, plural, zoned } from "../formats.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { Columns, FoldedCard, html, Loading, Muted, Problem } from "../ui.js";

const { Box, Text } = globalThis.ChakraUI;

// It may have more to tell when the run or one of its attempts has changed.
/** @param {Api.RunGrid} grid */
const stampOf = (grid) => `${grid.state} ${grid.attempts.map((one) => one.state)} ${grid.resumed?.at}`;

/** @param {{ grid: Api.RunGrid }} props */
function Lines({ grid }) {
  const { found, problem } = useAnswer(stampOf(grid), () => fetchRunHistory(grid.place, grid.run_id));
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return html`<${Loading} m="4" size="sm" />`;
  const notes = [
    found.archived && textOf("history.archived"),
    found.earlier > 0 && textOf("history.earlier", { lines: plural(found.earlier, "earlier line") }),
  ].filter(Boolean);
  const rows = found.lines.map((line) => [
    bareClock(line.at),
    line.of,
    html`<${Text} whiteSpace="pre-wrap">${line.text}<//>`,
  ]);
  return html`
    <${Box}>
      ${notes.map((note) => html`<${Muted} fontSize="sm" key=${note} px="4" py="1">${note}<//>`)}
      <${Columns} names=${[zoned(textOf("column.time")), textOf("column.of"), textOf("column.what")]} rows=${rows} />
    <//>`;
}

/** @param {{ grid: Api.RunGrid }} props */
export const RunHistory = ({ grid }) => html`
  <${FoldedCard} data-testid="history" note=${textOf("history.note")} title=${textOf("history.title")}>
    <${Lines} grid=${grid} />
  <//>`;
