// @ts-check
// The attempts so far, on a line of time with their waves: where did the time go?

import { bareClock, clock, duration, plural, zoned } from "../formats.js";
import { textOf } from "../texts.js";
import { Columns, FoldedCard, html, Muted, term } from "../ui.js";

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
  const told = textOf("attempt.took", { region, time: lasted, waves: plural(waves.length, "wave") });
  return html`
    <${Box} aria-label=${told} bg="bg.muted"
      borderRadius="sm" h="16px" minW="160px" position="relative" role="img">
      <${Box} bg="${lost ? "failed" : (TONES[state] ?? "running")}.emphasized" borderRadius="sm"
        h="full" left="${at(started_at)}%"
        minW="3px" position="absolute" title=${lasted} w="${Math.max(0, at(ended_at) - at(started_at))}%" />
      ${waves.map((wave) => html`<${Wave} key="${wave.stage} ${wave.wave}" wave=${wave} left=${at(wave.ended_at)} />`)}
    <//>`;
}

/** @param {{ wave: Api.WaveEnd, left: number }} props */
function Wave({ wave, left }) {
  const partitions = plural(wave.partitions, "partition");
  const facts = { at: clock(wave.ended_at), partitions, stage: wave.stage, wave: `${wave.wave}` };
  return html`
    <${Box} bg="fg" h="full" left="${left}%" opacity="0.6" position="absolute" w="1px"
      title=${textOf("attempt.wave", facts)} />`;
}

// One that was lost left no end on record: who noticed, and when.
/** @param {{ attempt: Api.AttemptLine }} props */
function State({ attempt: { lost, state } }) {
  if (lost === null) return html`<${Text}>${state}<//>`;
  return html`
    <${Box} data-testid="lost">
      <${Text} color="failed.fg" fontWeight="semibold">${textOf("attempt.lost")}<//>
      <${Muted}>${textOf("attempt.noticed", { at: clock(lost.at), by: lost.noticed })}<//>
    <//>`;
}

/** @param {{ attempts: Api.AttemptLine[] }} props */
function Lines({ attempts }) {
  const time = span(attempts);
  const rows = attempts.map((attempt) => [
    attempt.region,
    attempt.epoch || textOf("attempt.not_begun"),
    html`<${State} attempt=${attempt} />`,
    bareClock(attempt.started_at),
    attempt.ended_at ? duration(attempt.started_at, attempt.ended_at) : "",
    html`<${Lasted} attempt=${attempt} time=${time} />`,
  ]);
  const names = [
    term("region", textOf("column.region")),
    term("epoch", textOf("column.epoch")),
    textOf("column.state"),
    zoned(textOf("column.started")),
    textOf("column.lasted"),
    term("wave", textOf("column.waves")),
  ];
  return html`<${Columns} names=${names} rows=${rows} />`;
}

/** @param {{ grid: Api.RunGrid }} props */
export function Attempts({ grid }) {
  if (grid.attempts.length === 0) return null;
  return html`
    <${FoldedCard} data-testid="attempts" note=${textOf("attempt.note")}
      title=${plural(grid.attempts.length, "attempt")}>
      <${Lines} attempts=${grid.attempts} />
    <//>`;
}
