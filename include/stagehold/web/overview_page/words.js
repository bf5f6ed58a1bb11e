// How the overview says things: marks, colours and short texts. No markup here.

import { plural, timeToGo } from "../words.js";

// How a pipeline stands, in the order in which somebody wants to know.
export const STANDINGS = {
  failing: { mark: "✕", palette: "failed", name: "Failing", solid: true },
  overdue: { mark: "!", palette: "warning", name: "Overdue", solid: true },
  incomplete: { mark: "◔", palette: "warning", name: "Incomplete", solid: false },
  running: { mark: "▸", palette: "running", name: "Running", solid: true },
  never_run: { mark: "·", palette: "gray", name: "Never ran", solid: false },
  hidden: { mark: "–", palette: "gray", name: "Not shown", solid: false },
  current: { mark: "✓", palette: "success", name: "Complete", solid: false },
};

// What became of the newest run of an interval.
export const RUNS = {
  queued: { mark: "▹", palette: "running", text: "is queued", solid: false },
  running: { mark: "▸", palette: "running", text: "goes on", solid: true },
  success: { mark: "✓", palette: "success", text: "succeeded", solid: false },
  failed: { mark: "✕", palette: "failed", text: "failed", solid: true },
  canceled: { mark: "✕", palette: "failed", text: "was cancelled", solid: false },
  suspended: { mark: "‖", palette: "warning", text: "was suspended", solid: false },
  silent: { mark: "?", palette: "failed", text: "has ended without a word", solid: true },
};

export const ago = (moment) => `${timeToGo((Date.now() - Date.parse(moment)) / 1000)} ago`;

const INCOMPLETE = {
  empty: "nothing of it can be read",
  incomplete: "not whole",
};

// Why a pipeline stands as it does, in a sentence.
export function standingText(row) {
  const { newest } = row;
  switch (row.standing) {
    case "running":
      return `${plural(row.active, "run")} under way`;
    case "failing":
      return `the newest run for ${newest.mark.interval} ${RUNS[newest.mark.word].text}`;
    case "overdue":
      return `Airflow should have started a run ${ago(row.due)}`;
    case "incomplete":
      return `${newest.mark.interval}: ${INCOMPLETE[newest.state] ?? "nothing is on record"}; ${newest.text}`;
    case "never_run":
      return "no run is on record";
    case "hidden":
      return "you may see its DAG, but not its runs";
    default:
      return `${newest.mark.interval} is whole`;
  }
}

export const markText = ({ interval, word }) => `${interval}: the newest run ${RUNS[word].text}`;

export function whenText({ word, started_at, ended_at }) {
  return ended_at && !["queued", "running"].includes(word) ? `ended ${ago(ended_at)}` : `began ${ago(started_at)}`;
}

// How many intervals would come out differently now, and why the newest of them would.
export function staleText({ first, looked_at, problem, stale, unplanned }) {
  if (problem) return `What is stale cannot be said: ${problem}`;
  const of = `${stale} of the last ${looked_at} stale`;
  const unknown = unplanned ? `; of ${unplanned} it cannot be said` : "";
  return first ? `↻ ${of}: ${first.interval}, ${first.stage}: ${first.reason}${unknown}` : `${of}${unknown}`;
}

const href = (path) => new URL(`../../../dags/${path}`, import.meta.url).href;

// The tab of a pipeline's DAG, and the DAG itself for who may not see its runs.
export const pipelinePage = ({ name, standing }) =>
  href(standing === "hidden" ? encodeURIComponent(name) : `${encodeURIComponent(name)}/plugin/stagehold-intervals`);

export const BACK_ENDS = { postgresql: "PostgreSQL", sqlite: "SQLite" };
