// @ts-check
// How the overview says things: marks, colours and short texts. No markup here.

import { plural, timeToGo } from "../formats.js";

/** @typedef {{ mark: string, palette: string, solid: boolean }} Look */

// How a pipeline stands, in the order in which somebody wants to know.
/** @type {Record<Api.PipelineStanding, Look & { name: string }>} */
export const STANDINGS = {
  failing: { mark: "✕", palette: "failed", name: "Failing", solid: true },
  overdue: { mark: "!", palette: "warning", name: "Overdue", solid: true },
  incomplete: { mark: "◔", palette: "warning", name: "Incomplete", solid: false },
  running: { mark: "▸", palette: "running", name: "Running", solid: true },
  never_run: { mark: "·", palette: "gray", name: "Never ran", solid: false },
  hidden: { mark: "–", palette: "gray", name: "Not shown", solid: false },
  current: { mark: "✓", palette: "success", name: "Complete", solid: false },
};

export const IN_ORDER = /** @type {Api.PipelineStanding[]} */ (Object.keys(STANDINGS));

// What became of the newest run of an interval.
/** @type {Record<Api.RunWord, Look & { text: string }>} */
export const RUNS = {
  queued: { mark: "▹", palette: "running", text: "is queued", solid: false },
  running: { mark: "▸", palette: "running", text: "goes on", solid: true },
  success: { mark: "✓", palette: "success", text: "succeeded", solid: false },
  failed: { mark: "✕", palette: "failed", text: "failed", solid: true },
  canceled: { mark: "✕", palette: "failed", text: "was cancelled", solid: false },
  suspended: { mark: "‖", palette: "warning", text: "was suspended", solid: false },
  silent: { mark: "?", palette: "failed", text: "has ended without a word", solid: true },
};

/** @param {string} moment */
const ago = (moment) => `${timeToGo((Date.now() - Date.parse(moment)) / 1000)} ago`;

/** @type {Partial<Record<Api.IntervalState, string>>} */
const INCOMPLETE = {
  empty: "nothing of it can be read",
  incomplete: "not whole",
};

/** @type {Partial<Record<Api.PipelineStanding, (newest: Api.NewestInterval) => string>>} */
const OF_NEWEST = {
  failing: ({ mark }) => `the newest run for ${mark.interval} ${RUNS[mark.word].text}`,
  incomplete: ({ mark, state, text }) =>
    `${mark.interval}: ${(state && INCOMPLETE[state]) ?? "nothing is on record"}; ${text}`,
  current: ({ mark }) => `${mark.interval} is whole`,
};

// Why a pipeline stands as it does, in a sentence.
/** @param {Api.PipelineRow} row */
export function standingText({ standing, newest, active, due }) {
  if (standing === "running") return `${plural(active, "run")} under way`;
  if (standing === "overdue" && due) return `Airflow should have started a run ${ago(due)}`;
  if (standing === "hidden") return "you may see its DAG, but not its runs";
  return (newest && OF_NEWEST[standing]?.(newest)) ?? "no run is on record";
}

/** @param {Api.IntervalMark} mark */
export const markText = ({ interval, word }) => `${interval}: the newest run ${RUNS[word].text}`;

/** @param {Api.IntervalMark} mark */
export function whenText({ word, started_at, ended_at }) {
  return ended_at && !["queued", "running"].includes(word) ? `ended ${ago(ended_at)}` : `began ${ago(started_at)}`;
}

// How many intervals would come out differently now, and why the newest of them would.
/** @param {Api.PipelineStaleness} stale */
export function staleText({ first, looked_at, problem, stale, unplanned }) {
  if (problem) return `What is stale cannot be said: ${problem}`;
  const of = `${stale} of the last ${looked_at} stale`;
  const unknown = unplanned ? `; of ${unplanned} it cannot be said` : "";
  return first ? `↻ ${of}: ${first.interval}, ${first.stage}: ${first.reason}${unknown}` : `${of}${unknown}`;
}

/** @param {string} path */
const href = (path) => new URL(`../../../dags/${path}`, import.meta.url).href;

// The tab of a pipeline's DAG, and the DAG itself for who may not see its runs.
/** @param {Api.PipelineRow} row */
export const pipelinePage = ({ name, standing }) =>
  href(standing === "hidden" ? encodeURIComponent(name) : `${encodeURIComponent(name)}/plugin/stagehold-intervals`);

/** @type {Record<string, string>} */
export const BACK_ENDS = { postgresql: "PostgreSQL", sqlite: "SQLite" };
