// @ts-check
// How the overview says things: marks, colours and short texts. No markup here.

import { plural, runPage, timeToGo } from "../formats.js";

/** @typedef {{ mark: string, palette: string, solid: boolean }} Look */

// What somebody looks for, in the order in which they want to know.
/** @type {Record<Api.PipelineKind, Look & { name: string }>} */
export const KINDS = {
  failing: { mark: "✕", palette: "failed", name: "Failing", solid: true },
  blocked: { mark: "✕", palette: "failed", name: "Blocked", solid: false },
  overdue: { mark: "!", palette: "warning", name: "Overdue", solid: true },
  waived: { mark: "≈", palette: "warning", name: "Waived", solid: false },
  stale: { mark: "↻", palette: "warning", name: "Stale", solid: false },
  running: { mark: "▸", palette: "running", name: "Running", solid: true },
  never_run: { mark: "·", palette: "gray", name: "Never ran", solid: false },
  hidden: { mark: "–", palette: "gray", name: "Not shown", solid: false },
  current: { mark: "✓", palette: "success", name: "Complete", solid: false },
};

export const KINDS_IN_ORDER = /** @type {Api.PipelineKind[]} */ (Object.keys(KINDS));

/** @type {Record<Api.PipelineOrder, string>} */
export const ORDERS = { state: "what needs somebody", name: "name", newest: "newest run" };

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

// Why a pipeline stands as it does, in a sentence.
/** @param {Api.PipelineRow} row */
export function standingText({ standing, newest, active, due, marks }) {
  const going = active > 0 ? `${plural(active, "run")} under way` : null;
  const needs = marks.filter((mark) => mark.need).length;
  if (needs > 0) return [`${plural(needs, "interval")} of the last ${marks.length}`, going].filter(Boolean).join("; ");
  if (going) return going;
  if (standing === "overdue" && due) return `Airflow should have started a run ${ago(due)}`;
  if (standing === "hidden") return "you may see its DAG, but not its runs";
  if (newest === null) return "no run is on record";
  return marks.length > 1 ? `the last ${marks.length} intervals are whole` : `${newest.mark.interval} is whole`;
}

/** @type {Record<Api.Need, (mark: Api.IntervalMark) => string>} */
const NEEDS = {
  blocked: () => "its gate refused some of it",
  failed: ({ word }) => `the newest run ${RUNS[word].text}`,
  suspended: () => "its run was suspended, and waits for somebody",
  incomplete: ({ word }) => `not whole, though the newest run ${RUNS[word].text}`,
};

// Why an interval needs somebody.
/** @param {Api.IntervalMark} mark */
export const needText = (mark) => (mark.need ? `${NEEDS[mark.need](mark)}: ${mark.reason}` : "");

// What the one button of an interval says.
/** @param {Api.IntervalMark} mark */
export function stepText({ need, step }) {
  if (step === "look") return "Look at its gate";
  if (step === "run") return "Run it";
  return need === "incomplete" ? "Bring up to date" : "Resume";
}

/** @param {Api.IntervalMark} mark */
export const markText = (mark) =>
  `${mark.interval}: ${mark.need ? needText(mark) : `the newest run ${RUNS[mark.word].text}`}`;

// A success that is not whole, or that waits for somebody, looks like none.
/** @param {Api.IntervalMark} mark */
export const markLook = ({ word, need }) =>
  need && word === "success"
    ? { mark: "◔", palette: need === "blocked" ? "failed" : "warning", solid: true }
    : RUNS[word];

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

// Where a gate's refusal is looked at: on the run's page, or, of a command's run, at the interval on the tab.
/**
 * @param {Api.PipelineRow} row
 * @param {Api.IntervalMark} mark
 */
export const lookPage = (row, mark) =>
  runPage(mark.run_id) ?? `${pipelinePage(row)}?interval=${encodeURIComponent(mark.interval)}`;

/** @type {Record<string, string>} */
export const BACK_ENDS = { postgresql: "PostgreSQL", sqlite: "SQLite" };
