// @ts-check
// How the tab of a pipeline says things: marks, colours and short texts. No markup here.

import { bytes, plural, timeToGo } from "../formats.js";

/** @typedef {{ mark: string, palette: string, text: string, bad?: boolean }} Look */

// Those that somebody has to look at are solid, so that they stand out among many.
/** @type {Record<Api.StageStanding, Look>} */
export const STATES = {
  running: { mark: "▸", palette: "running", text: "running" },
  blocked: { mark: "✕", palette: "failed", text: "blocked by its gate", bad: true },
  failed: { mark: "✕", palette: "failed", text: "failed", bad: true },
  held: { mark: "‖", palette: "warning", text: "held until its gate lets all of it", bad: true },
  damaged: { mark: "!", palette: "warning", text: "damaged: some of its data is not what was recorded", bad: true },
  missing: { mark: "", palette: "gray", text: "nothing is on record" },
  partial: { mark: "◔", palette: "warning", text: "some partitions are missing" },
  released: { mark: "–", palette: "gray", text: "released: it was consumable, and nobody needs its data any more" },
  consumable: { mark: "✓", palette: "success", text: "consumable" },
};

export const STATES_IN_ORDER = /** @type {Api.StageStanding[]} */ (Object.keys(STATES));

/** @typedef {"failed" | "waived" | "warned" | "passed"} Verdict */

// What its gate came to, as far as that is on record without asking about each partition.
/**
 * @param {Api.StageCell} cell
 * @returns {Verdict | null}
 */
export function verdictOf({ judged, refused, warned, counts }) {
  if (judged === 0) return null;
  if (refused > 0) return counts.blocked || counts.held ? "failed" : "waived";
  return warned > 0 ? "warned" : "passed";
}

/** @type {Record<Verdict, Look>} */
export const VERDICTS = {
  failed: { mark: "✕", palette: "failed", text: "failed" },
  waived: { mark: "≈", palette: "warning", text: "waived" },
  warned: { mark: "!", palette: "warning", text: "passed with warnings" },
  passed: { mark: "✓", palette: "success", text: "passed" },
};

export const VERDICTS_IN_ORDER = /** @type {Verdict[]} */ (Object.keys(VERDICTS));

/** @param {Api.StageCell} cell */
export const recorded = (cell) => Object.values(cell.counts).reduce((sum, count) => sum + count, 0);

// All that counts was made by earlier runs; the newest one took it over.
/** @param {Api.StageCell} cell */
export const isReused = (cell) => cell.computed === 0 && cell.reused > 0;

/** @param {Api.StageCell} cell */
export function amountText(cell) {
  const done = (cell.counts.consumable ?? 0) + (cell.counts.released ?? 0);
  const total = Math.max(cell.wanted ?? 0, recorded(cell));
  return done === total ? total.toLocaleString() : `${done.toLocaleString()}/${total.toLocaleString()}`;
}

/**
 * @param {Api.StageCell} cell
 * @param {string | null} gate
 */
export function gateText(cell, gate) {
  const verdict = verdictOf(cell);
  if (!gate) return null;
  if (verdict === null) return `gate ${gate} has judged nothing`;
  const facts = [`${plural(cell.judged, "partition")} judged`];
  if (cell.refused) facts.push(`${cell.refused.toLocaleString()} not met`);
  if (cell.warned) facts.push(`${cell.warned.toLocaleString()} with warnings`);
  return `gate ${gate} ${VERDICTS[verdict].text} (${facts.join(", ")})`;
}

/** @param {Api.StageCell} cell */
export function madeText({ computed, reused }) {
  if (reused === 0) return "all computed by the newest run";
  if (computed === 0) return "all by earlier runs, none by the newest";
  return `${computed.toLocaleString()} computed by the newest run, ${reused.toLocaleString()} by earlier ones`;
}

// A stage of an interval that would come out differently now; null if it would not, or if nobody knows yet.
/**
 * @param {Api.Staleness | null} stale
 * @param {string} interval
 * @param {string} stage
 */
export const staleOf = (stale, interval, stage) =>
  stale?.stale.find((one) => one.interval === interval)?.stages.find((one) => one.stage === stage) ?? null;

/** @param {Api.StaleStage} stale */
export const staleText = ({ partitions, reason }) => `stale: ${plural(partitions, "partition")} again: ${reason}`;

// One sentence for each cell: its title, and its name for screen readers.
/**
 * @param {string} interval
 * @param {Api.StageColumn} column
 * @param {Api.StageCell} cell
 * @param {Api.StaleStage | null} stale
 */
export function cellText(interval, column, cell, stale) {
  const facts = [`${column.name} for ${interval}: ${STATES[cell.state].text}`];
  const noun = recorded(cell) === 1 ? "partition" : "partitions";
  if (recorded(cell)) facts.push(`${amountText(cell)} ${noun}`, madeText(cell), plural(cell.rows, "row"));
  const gate = gateText(cell, column.gate);
  if (gate && recorded(cell)) facts.push(gate);
  if (stale) facts.push(staleText(stale));
  return facts.join(" · ");
}

/** @param {Api.StageCell} cell */
export const isBad = (cell) => STATES[cell.state].bad === true;

/** @param {number} seconds */
export const workText = (seconds) => (seconds > 0 && seconds < 10 ? `${seconds.toFixed(1)} s` : timeToGo(seconds));

/** @typedef {"seconds" | "rows" | "bytes"} Metric */

// How values of charts are written.
/** @type {Record<Metric, { name: string, write: (value: number) => string }>} */
export const METRICS = {
  seconds: { name: "Duration", write: (value) => (value === 0 ? "0" : workText(value)) },
  rows: { name: "Rows", write: (value) => value.toLocaleString([], { notation: "compact" }) },
  bytes: { name: "Bytes", write: bytes },
};

// A run id of the ledger without the DAG that it is of.
/** @param {string} runId */
export const shortRun = (runId) => runId.slice(runId.indexOf("/") + 1);
