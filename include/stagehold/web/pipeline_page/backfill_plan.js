// @ts-check
// What a backfill would do: intervals by stages with how many partitions run, and why.

import { plural, timeToGo } from "../formats.js";
import { number } from "../numbers.js";
import { textOf, withTexts } from "../texts.js";
import { html, Muted, ScrollingTable, SmallButton, tooltip } from "../ui.js";

const { useState } = globalThis.React;
const { Box, Table, Text } = globalThis.ChakraUI;

const MOST_ROWS = 15; // that are shown before somebody asks for all

/** @type {Record<Api.ShownCell["state"], { palette: string, text: string }>} */
const LOOKS = withTexts("planned", {
  good: { palette: "success" },
  missing: { palette: "gray" },
  failed: { palette: "failed" },
  stale: { palette: "warning" },
  blocked: { palette: "failed" },
});

/** @param {Api.CellReason} reason */
const because = ({ text, count, partitions }) => `${text} (${textOf("planned_cell.which", { count, partitions })})`;

// The server gives reasons for what stays as it is, too.
/** @param {Api.ShownCell} cell */
const whyAgain = (cell) => cell.reasons.filter((why) => why.runs || why.judges);

/**
 * @param {string} interval
 * @param {Api.ShownCell} cell
 */
function planText(interval, cell) {
  const time = cell.seconds >= 1 ? textOf("planned_cell.time", { time: timeToGo(cell.seconds) }) : "";
  const partitions = plural(cell.partitions, "partition");
  const runs = cell.runs ? textOf("planned_cell.runs", { partitions, runs: cell.runs }) + time : "";
  const reuses = cell.reuses ? textOf("planned_cell.reuses", { reuses: cell.reuses }) : "";
  const what = [runs, reuses].filter(Boolean).join(", ") || textOf("planned_cell.nothing");
  const state = `${LOOKS[cell.state].text}, ${what}`;
  const told = textOf("square.for", { interval, stage: cell.stage, state });
  return [told, ...cell.reasons.map(because)].join(" · ");
}

/** @param {Api.ShownCell} cell */
function shortText({ runs, reuses, state }) {
  if (runs) return `▸ ${number(runs)} ${LOOKS[state].text}`;
  return reuses ? textOf("planned_cell.kept", { reuses }) : "–";
}

/** @param {{ interval: string, cell: Api.ShownCell }} props */
function Planned({ interval, cell }) {
  const { palette } = LOOKS[cell.state];
  const paint = cell.runs
    ? { bg: `${palette}.subtle`, borderColor: `${palette}.emphasized`, color: `${palette}.fg` }
    : { bg: "transparent", borderColor: "border", color: "fg.muted" };
  return html`
    <${Box} ...${tooltip(planText(interval, cell))} borderRadius="sm" borderWidth="1px" data-runs=${cell.runs}
      data-state=${cell.state} data-testid="plan-${interval}-${cell.stage}" fontSize="13px" minW="84px" px="2" py="1"
      role="img" whiteSpace="nowrap" ...${paint}>
      ${shortText(cell)}
    <//>`;
}

/** @param {{ one: Api.ShownInterval }} props */
function Why({ one }) {
  if (one.problem) return html`<${Text} color="failed.fg" fontSize="sm">${one.problem}<//>`;
  const texts = one.cells.flatMap((cell) => whyAgain(cell).map((why) => `${cell.stage}: ${why.text}`));
  const different = [...new Set(texts)];
  return html`
    <${Muted} lineClamp=${2} minW="220px" title=${different.join("\n")}>
      ${different.join("; ") || textOf("planned_cell.nothing")}
    <//>`;
}

const TIGHT = {
  "& td, & th": { borderBottomWidth: 0, paddingBlock: 1 },
  "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
};
const STICKY = { bg: "bg", insetInlineStart: 0, position: "sticky", zIndex: 1 };

/** @param {{ one: Api.ShownInterval, names: string[] }} props */
const Row = ({ one, names }) => html`
  <${Table.Row} data-testid="planned-${one.interval}">
    <${Table.Cell} ...${STICKY} fontWeight="semibold" whiteSpace="nowrap">${one.interval}<//>
    ${names.map((name) => {
      const cell = one.cells.find(({ stage }) => stage === name);
      return html`
        <${Table.Cell} key=${name}>${cell && html`<${Planned} cell=${cell} interval=${one.interval} />`}<//>`;
    })}
    <${Table.Cell}><${Why} one=${one} /><//>
  <//>`;

/** @param {{ plan: Api.ShownBackfill }} props */
export function BackfillPlan({ plan }) {
  const [whole, setWhole] = useState(false);
  const rows = whole ? plan.intervals : plan.intervals.slice(0, MOST_ROWS);
  const names = plan.stages.length ? plan.stages : (plan.intervals[0]?.cells.map((cell) => cell.stage) ?? []);
  return html`
    <${Box} borderTopWidth="1px" data-testid="backfill-plan">
      <${ScrollingTable}>
        <${Table.Root} css=${TIGHT} size="sm">
          <${Table.Header}>
            <${Table.Row}>
              <${Table.ColumnHeader} ...${STICKY}>${textOf("column.interval")}<//>
              ${names.map((name) => html`<${Table.ColumnHeader} key=${name}>${name}<//>`)}
              <${Table.ColumnHeader}>${textOf("column.why")}<//>
            <//>
          <//>
          <${Table.Body}>${rows.map((one) => html`<${Row} key=${one.interval} names=${names} one=${one} />`)}<//>
        <//>
      <//>
      ${
        rows.length < plan.intervals.length &&
        html`
          <${Box} px="4" py="2">
            <${SmallButton} onClick=${() => setWhole(true)} variant="ghost">
              ${textOf("planned_cell.all", { all: plan.intervals.length })}
            <//>
          <//>`
      }
    <//>`;
}
