// @ts-check
// How the newest intervals stand, and which of them somebody has to look at.

import { clock, lookedText, plural } from "../formats.js";
import { Headline, html, Muted, RunLink } from "../ui.js";
import { isBad, STATES } from "./interval_texts.js";

const { Box, Flex, Heading, Text } = globalThis.ChakraUI;

const MOST_NAMED = 5;

/** @param {Api.IntervalRow} row */
const bad = (row) => row.cells.filter(isBad);

/** @param {Api.IntervalRow[]} rows */
function headline(rows) {
  if (rows.length === 0) return "Nothing has run yet";
  const wrong = rows.filter((row) => bad(row).length > 0).length;
  const active = rows.filter((row) => row.run?.active).length;
  const going = active ? `, ${active} under way` : "";
  if (wrong === 0) return `Nothing is wrong with ${plural(rows.length, "interval")}${going}`;
  const verb = wrong === 1 ? "needs" : "need";
  return `${wrong} of ${plural(rows.length, "interval")} ${verb} a look${going}`;
}

/** @param {{ row: Api.IntervalRow }} props */
function Wrong({ row }) {
  const name = html`<${Text} as="span" fontWeight="semibold">${row.interval}<//>`;
  const told = bad(row).map((cell) => `${cell.stage} ${STATES[cell.state].text}`);
  return html`
    <${Text} fontSize="sm" overflowWrap="anywhere">
      <${RunLink} fontWeight="semibold" otherwise=${name} runId=${row.run?.run_id ?? ""}>${row.interval}<//>
      : ${told.join(", ")}
    <//>`;
}

// How many of those that were planned would come out differently, with why the newest of them would.
/** @param {{ stale: Api.Staleness }} props */
function Stale({ stale: { looked_at, planned_at, stale, unplanned } }) {
  if (planned_at === null) return html`<${Muted} fontSize="sm">Which are stale is being worked out.<//>`;
  const [one] = stale;
  const [other] = unplanned;
  return html`
    <${Muted} fontSize="sm" overflowWrap="anywhere" title="As of ${clock(planned_at)}">
      Stale: ${stale.length} of ${plural(looked_at.length, "interval")} looked at
      ${one && `, the newest ${one.interval}, ${one.stages[0].stage}: ${one.stages[0].reason}`}
      ${other && `. Of ${unplanned.length} it cannot be said, the newest ${other.interval}: ${other.problem}`}
    <//>`;
}

/** @param {{ page: Api.IntervalPage, which: string, stale: Api.Staleness | null }} props */
export function Summary({ page, which, stale }) {
  const rows = page.intervals;
  const wrong = rows.filter((row) => bad(row).length > 0);
  const active = rows.some((row) => row.run?.active);
  const palette = wrong.length ? "failed" : active ? "running" : rows.length ? "success" : "gray";
  const shown = rows.length < page.total ? `, ${rows.length} ${which} shown` : "";
  return html`
    <${Headline} data-testid="summary" palette=${palette}>
      <${Heading} aria-live="polite" as="h2" data-testid="headline" size="lg">${headline(rows)}<//>
      <${Text} color="fg.muted" mt="1">
        ${page.pipeline}${page.schedule && `, ${page.schedule}`}: ${plural(page.total, "interval")} on record
        ${`${shown}, ${lookedText(page.looked)}`}
      <//>
      ${stale && rows.length > 0 && html`<${Box} data-testid="stale" mt="1"><${Stale} stale=${stale} /><//>`}
      ${
        wrong.length > 0 &&
        html`
          <${Flex} direction="column" gap="1" mt="3">
            ${wrong.slice(0, MOST_NAMED).map((row) => html`<${Wrong} key=${row.interval} row=${row} />`)}
            ${
              wrong.length > MOST_NAMED &&
              html`<${Muted} fontSize="sm">and ${plural(wrong.length - MOST_NAMED, "more interval")}<//>`
            }
          <//>`
      }
    <//>`;
}
