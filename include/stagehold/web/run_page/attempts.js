// @ts-check
// The attempts so far, on a line of time with their waves: where did the time go?

import { clock, duration, plural } from "../formats.js";
import { Columns, FoldedCard, html, Muted } from "../ui.js";

const { Box, Text } = globalThis.ChakraUI;

/** @type {Partial<Record<Api.AttemptState, string>>} */
const TONES = { finished: "success", failed: "failed", canceled: "failed" };

/** @param {Api.AttemptLine[]} attempts */
function span(attempts) {
  const now = Date.now();
  const begins = attempts.map((one) => Date.parse(one.started_at));
  const ends = attempts.map((one) => (one.ended_at ? Date.parse(one.ended_at) : now));
  const first = Math.min(...begins);
  return { first, length: Math.max(1, Math.max(...ends) - first), now };
}

/** @param {{ attempt: Api.AttemptLine, time: ReturnType<typeof span> }} props */
function Lasted({ attempt, time }) {
  const { region, lost, state, started_at, waves } = attempt;
  const ended_at = attempt.ended_at ?? new Date(time.now).toISOString();
  const at = (/** @type {string} */ moment) => (100 * (Date.parse(moment) - time.first)) / time.length;
  const lasted = duration(started_at, ended_at);
  return html`
    <${Box} aria-label="${region} took ${lasted}, ${plural(waves.length, "wave")}" bg="bg.muted"
      borderRadius="sm" h="16px" minW="160px" position="relative" role="img">
      <${Box} bg="${lost ? "failed" : (TONES[state] ?? "running")}.emphasized" borderRadius="sm"
        h="full" left="${at(started_at)}%"
        minW="3px" position="absolute" title=${lasted} w="${Math.max(0, at(ended_at) - at(started_at))}%" />
      ${waves.map((wave) => html`<${Wave} key="${wave.stage} ${wave.wave}" wave=${wave} left=${at(wave.ended_at)} />`)}
    <//>`;
}

/** @param {{ wave: Api.WaveEnd, left: number }} props */
function Wave({ wave, left }) {
  const facts = `${plural(wave.partitions, "partition")}, ${clock(wave.ended_at)}`;
  return html`
    <${Box} bg="fg" h="full" left="${left}%" opacity="0.6" position="absolute" w="1px"
      title="${wave.stage}, wave ${wave.wave}: ${facts}" />`;
}

// One that was lost left no end on record: who noticed, and when.
/** @param {{ attempt: Api.AttemptLine }} props */
function State({ attempt: { lost, state } }) {
  if (lost === null) return html`<${Text}>${state}<//>`;
  return html`
    <${Box} data-testid="lost">
      <${Text} color="failed.fg" fontWeight="semibold">lost<//>
      <${Muted}>noticed by ${lost.noticed}, ${clock(lost.at)}<//>
    <//>`;
}

/** @param {{ attempts: Api.AttemptLine[] }} props */
function Lines({ attempts }) {
  const time = span(attempts);
  const rows = attempts.map((attempt) => [
    attempt.region,
    attempt.epoch || "not begun",
    html`<${State} attempt=${attempt} />`,
    clock(attempt.started_at),
    attempt.ended_at ? duration(attempt.started_at, attempt.ended_at) : "",
    html`<${Lasted} attempt=${attempt} time=${time} />`,
  ]);
  return html`<${Columns} names=${["Region", "Epoch", "State", "Started", "Lasted", "Waves"]} rows=${rows} />`;
}

/** @param {{ grid: Api.RunGrid }} props */
export function Attempts({ grid }) {
  if (grid.attempts.length === 0) return null;
  return html`
    <${FoldedCard} data-testid="attempts" note="and where the time went"
      title=${plural(grid.attempts.length, "attempt")}>
      <${Lines} attempts=${grid.attempts} />
    <//>`;
}
