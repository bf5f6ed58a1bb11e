// @ts-check
// How the overview says things: marks, colours and short texts. No markup here.

import { pageOf, plural, runPage, timeToGo } from "../formats.js";
import { textOf, withTexts } from "../texts.js";

/** @typedef {{ mark: string, palette: string, solid: boolean, text: string }} Look */

// What somebody looks for, in the order in which they want to know.
/** @type {Record<Api.PipelineKind, Look>} */
export const KINDS = withTexts("kind", {
  failing: { mark: "✕", palette: "failed", solid: true },
  blocked: { mark: "✕", palette: "failed", solid: false },
  overdue: { mark: "!", palette: "warning", solid: false },
  waived: { mark: "≈", palette: "warning", solid: false },
  stale: { mark: "↻", palette: "warning", solid: false },
  running: { mark: "▸", palette: "running", solid: false },
  never_run: { mark: "·", palette: "gray", solid: false },
  hidden: { mark: "–", palette: "gray", solid: false },
  current: { mark: "✓", palette: "success", solid: false },
});

export const KINDS_IN_ORDER = /** @type {Api.PipelineKind[]} */ (Object.keys(KINDS));

/** @type {Api.PipelineOrder[]} */
const ORDERS = ["state", "name", "newest"];

export const orders = () => ORDERS.map((order) => [order, textOf(`order.${order}`)]);

// What became of the newest run of an interval.
/** @type {Record<Api.RunWord, Look>} */
export const RUNS = withTexts("newest", {
  queued: { mark: "▹", palette: "running", solid: false },
  running: { mark: "▸", palette: "running", solid: true },
  success: { mark: "✓", palette: "success", solid: false },
  failed: { mark: "✕", palette: "failed", solid: true },
  canceled: { mark: "✕", palette: "failed", solid: false },
  suspended: { mark: "‖", palette: "warning", solid: false },
  silent: { mark: "?", palette: "failed", solid: true },
});

/** @param {string} moment */
const since = (moment) => timeToGo((Date.now() - Date.parse(moment)) / 1000);

// Why a pipeline stands as it does, in a sentence.
/** @param {Api.PipelineRow} row */
export function standingText({ standing, newest, active, due, marks }) {
  const going = active > 0 ? textOf("standing.active", { runs: plural(active, "run") }) : null;
  const needs = marks.filter((mark) => mark.need).length;
  const needy = textOf("standing.needs", { intervals: plural(needs, "interval"), all: marks.length });
  if (needs > 0) return [needy, going].filter(Boolean).join("; ");
  if (going) return going;
  if (standing === "overdue" && due) return textOf("standing.overdue", { time: since(due) });
  if (standing === "hidden") return textOf("standing.hidden");
  if (newest === null) return textOf("standing.none");
  const { interval } = newest.mark;
  return marks.length > 1 ? textOf("standing.whole", { all: marks.length }) : textOf("standing.alone", { interval });
}

// Why an interval needs somebody.
/** @param {Api.IntervalMark} mark */
export function needText({ need, reason, word }) {
  return need ? `${textOf(`need.${need}`, { ended: RUNS[word].text })}: ${reason}` : "";
}

// What the one button of an interval says.
/** @param {Api.IntervalMark} mark */
export function stepText({ need, step }) {
  if (step === "look") return textOf("step.look");
  if (step === "run") return textOf("step.run");
  return need === "incomplete" ? textOf("step.update") : textOf("step.resume");
}

/** @param {Api.IntervalMark} mark */
export const markText = (mark) =>
  `${mark.interval}: ${mark.need ? needText(mark) : textOf("need.failed", { ended: RUNS[mark.word].text })}`;

// A success that is not whole, or that waits for somebody, looks like none.
/** @param {Api.IntervalMark} mark */
export const markLook = ({ word, need }) =>
  need && word === "success"
    ? { mark: "◔", palette: need === "blocked" ? "failed" : "warning", solid: true }
    : RUNS[word];

/** @param {Api.IntervalMark} mark */
export function whenText({ word, started_at, ended_at }) {
  return ended_at && !["queued", "running"].includes(word)
    ? textOf("mark.ended", { time: since(ended_at) })
    : textOf("mark.began", { time: since(started_at) });
}

// How many intervals would come out differently now, and why the newest of them would.
/** @param {Api.PipelineStaleness} stale */
export function staleText({ first, looked_at, problem, stale, unplanned }) {
  if (problem) return textOf("stale.problem", { problem });
  const of = textOf("stale.count", { stale, all: looked_at });
  const unknown = unplanned ? textOf("stale.unknown", { unknown: unplanned }) : "";
  return first ? `↻ ${of}: ${first.interval}, ${first.stage}: ${first.reason}${unknown}` : `${of}${unknown}`;
}

// The tab of a pipeline's DAG, and the DAG itself for who may not see its runs.
/** @param {Api.PipelineRow} row */
export const pipelinePage = ({ place, standing }) =>
  pageOf(place, standing === "hidden" ? "" : "/plugin/stagehold-intervals");

// Where a gate's refusal is looked at: on the run's page, or, of a command's run, on the tab with the intervals of that
// day. What is no day is looked for there.
/**
 * @param {Api.PipelineRow} row
 * @param {Api.IntervalMark} mark
 */
export function lookPage(row, mark) {
  const [day] = /^\d{4}-\d{2}-\d{2}/.exec(mark.interval) ?? [""];
  const page = pipelinePage(row);
  return runPage(mark.run_id) ?? (day ? `${page}${page.includes("?") ? "&" : "?"}first=${day}&last=${day}` : page);
}

/** @type {Record<string, string>} */
export const BACK_ENDS = { postgresql: "PostgreSQL", sqlite: "SQLite" };
