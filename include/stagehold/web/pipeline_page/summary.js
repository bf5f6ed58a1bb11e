// @ts-check
// How the newest intervals stand, and which of them somebody has to look at.

import { clock, lookedText, plural } from "../formats.js";
import { textOf } from "../texts.js";
import { Coded, Headline, html, Muted, RunLink } from "../ui.js";
import { isBad, STATES } from "./interval_texts.js";

const { Box, Flex, Heading, Text } = globalThis.ChakraUI;

const MOST_NAMED = 5;

/** @param {Api.IntervalRow} row */
const bad = (row) => row.cells.filter(isBad);

/** @param {Api.IntervalRow[]} rows */
function headline(rows) {
  if (rows.length === 0) return textOf("summary.none");
  const wrong = rows.filter((row) => bad(row).length > 0).length;
  const active = rows.filter((row) => row.run?.active).length;
  const going = active ? textOf("summary.active", { active }) : "";
  const intervals = plural(rows.length, "interval");
  return textOf(wrong ? "summary.wrong" : "summary.good", { count: wrong, intervals }) + going;
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
  if (planned_at === null) return html`<${Muted} fontSize="sm">${textOf("summary.planning")}<//>`;
  const [one] = stale;
  const [other] = unplanned;
  return html`
    <${Muted} fontSize="sm" overflowWrap="anywhere" title=${textOf("stale.as_of", { at: clock(planned_at) })}>
      ${textOf("summary.stale", { intervals: plural(looked_at.length, "interval"), stale: stale.length })}
      ${one && textOf("summary.newest", { interval: one.interval, ...one.stages[0] })}
      ${other && textOf("summary.unknown", { ...other, unknown: unplanned.length })}
    <//>`;
}

/** @param {{ page: Api.IntervalPage, which: string, stale: Api.Staleness | null }} props */
export function Summary({ page, which, stale }) {
  const rows = page.intervals;
  const wrong = rows.filter((row) => bad(row).length > 0);
  const active = rows.some((row) => row.run?.active);
  const palette = wrong.length ? "failed" : active ? "running" : rows.length ? "success" : "gray";
  const shown = rows.length < page.total ? textOf("summary.shown", { shown: rows.length, which }) : "";
  const schedule = page.schedule ? `, ${page.schedule}` : "";
  return html`
    <${Headline} data-testid="summary" palette=${palette}>
      <${Heading} aria-live="polite" as="h2" data-testid="headline" size="lg">${headline(rows)}<//>
      <${Text} color="fg.muted" mt="1">
        ${`${page.pipeline}${schedule}: ${textOf("summary.recorded", { intervals: plural(page.total, "interval") })}`}
        ${`${shown}, ${lookedText(page.looked)}`}
      <//>
      ${
        page.total === 0 &&
        html`
          <${Text} data-testid="first" mt="2">
            <${Coded} text=${textOf("first.trigger", { pipeline: page.pipeline })} />
          <//>`
      }
      ${stale && rows.length > 0 && html`<${Box} data-testid="stale" mt="1"><${Stale} stale=${stale} /><//>`}
      ${
        wrong.length > 0 &&
        html`
          <${Flex} direction="column" gap="1" mt="3">
            ${wrong.slice(0, MOST_NAMED).map((row) => html`<${Wrong} key=${row.interval} row=${row} />`)}
            ${
              wrong.length > MOST_NAMED &&
              html`<${Muted} fontSize="sm">
                  ${textOf("more", { more: plural(wrong.length - MOST_NAMED, "more interval") })}
                <//>`
            }
          <//>`
      }
    <//>`;
}
