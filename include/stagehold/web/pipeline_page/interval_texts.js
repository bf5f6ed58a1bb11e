// @ts-check
// How the tab of a pipeline says things: marks, colours and short texts. No markup here.

import { bytes, lasted, plural } from "../formats.js";
import { number } from "../numbers.js";
import { textOf, withTexts } from "../texts.js";

/** @typedef {{ mark: string, palette: string, text: string, bad?: boolean }} Look */

// Those that somebody has to look at are solid, so that they stand out among many.
/** @type {Record<Api.StageStanding, Look>} */
export const STATES = withTexts("stage_state", {
  running: { mark: "▸", palette: "running" },
  blocked: { mark: "✕", palette: "failed", bad: true },
  failed: { mark: "✕", palette: "failed", bad: true },
  held: { mark: "‖", palette: "warning", bad: true },
  damaged: { mark: "!", palette: "warning", bad: true },
  missing: { mark: "", palette: "gray" },
  partial: { mark: "◔", palette: "warning" },
  released: { mark: "–", palette: "gray" },
  consumable: { mark: "✓", palette: "success" },
});

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
export const VERDICTS = withTexts("verdict_state", {
  failed: { mark: "✕", palette: "failed" },
  waived: { mark: "≈", palette: "warning" },
  warned: { mark: "!", palette: "warning" },
  passed: { mark: "✓", palette: "success" },
});

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
  return done === total ? number(total) : `${number(done)}/${number(total)}`;
}

/**
 * @param {Api.StageCell} cell
 * @param {string | null} gate
 */
export function gateText(cell, gate) {
  const verdict = verdictOf(cell);
  if (!gate) return null;
  if (verdict === null) return textOf("gate.none", { gate });
  const facts = [textOf("gate.judged", { partitions: plural(cell.judged, "partition") })];
  if (cell.refused) facts.push(textOf("gate.refused", { refused: cell.refused }));
  if (cell.warned) facts.push(textOf("gate.warned", { warned: cell.warned }));
  return textOf("gate.told", { facts: facts.join(", "), gate, verdict: VERDICTS[verdict].text });
}

/** @param {Api.StageCell} cell */
export function madeText({ computed, reused }) {
  if (reused === 0) return textOf("made.newest");
  if (computed === 0) return textOf("made.earlier");
  return textOf("made.both", { computed, reused });
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
export const staleText = ({ partitions, reason }) =>
  textOf("stale.stage", { partitions: plural(partitions, "partition"), reason });

// One sentence for each cell: its title, and its name for screen readers.
/**
 * @param {string} interval
 * @param {Api.StageColumn} column
 * @param {Api.StageCell} cell
 * @param {Api.StaleStage | null} stale
 */
export function cellText(interval, column, cell, stale) {
  const facts = [textOf("square.for", { interval, stage: column.name, state: STATES[cell.state].text })];
  const amount = textOf("square.partitions", { amount: amountText(cell), count: recorded(cell) });
  if (recorded(cell)) facts.push(amount, madeText(cell), plural(cell.rows, "row"));
  const gate = gateText(cell, column.gate);
  if (gate && recorded(cell)) facts.push(gate);
  if (stale) facts.push(staleText(stale));
  return facts.join(" · ");
}

/** @param {Api.StageCell} cell */
export const isBad = (cell) => STATES[cell.state].bad === true;

/** @typedef {"seconds" | "rows" | "bytes"} Metric */

// How values of charts are written.
/** @type {Record<Metric, { write: (value: number) => string }>} */
const WRITTEN = {
  seconds: { write: (value) => (value === 0 ? "0" : lasted(value)) },
  rows: { write: (value) => number(value, { notation: "compact" }) },
  bytes: { write: bytes },
};

export const METRICS = withTexts("metric", WRITTEN);

// A run id of the ledger without the DAG that it is of.
/** @param {string} runId */
export const shortRun = (runId) => runId.slice(runId.indexOf("/") + 1);
