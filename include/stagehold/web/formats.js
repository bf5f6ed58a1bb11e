// @ts-check
// How all pages write counts, times and outcomes, and where the page of a run is. No markup here.

import { chosenZone, once } from "./airflow_choices.js";
import { decimal, number } from "./numbers.js";
import { textOf, withTexts } from "./texts.js";

/** @param {number} count */
export function bytes(count) {
  if (count < 1024) return `${number(count)} B`;
  const power = Math.min(Math.floor(Math.log2(count) / 10), 4);
  return `${decimal(count / 1024 ** power)} ${["", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

// About how long something takes.
/** @param {number} seconds */
export function timeToGo(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${decimal(seconds / 3600)} h`;
}

// How long something took.
/** @param {number} seconds */
export function lasted(seconds) {
  if (seconds < 9.95) return `${decimal(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${number(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`;
}

/**
 * @param {string} from
 * @param {string} to
 */
export const duration = (from, to) => lasted((Date.parse(to) - Date.parse(from)) / 1000);

// Swedish is written as Airflow's UI writes moments.
const momentsOf = once(
  (zone) => new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone: zone }),
);
const zonesOf = once((zone) => new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "short" }));

// Where the zone is named beside it: in a column whose head says it.
/** @param {string | number} moment */
export const bareClock = (moment) => momentsOf(chosenZone()).format(new Date(moment));

/** @param {string} name of a column of moments */
export const zoned = (name) => `${name} (${chosenZone()})`;

/** @param {string | number} moment */
export function clock(moment) {
  const parts = zonesOf(chosenZone()).formatToParts(new Date(moment));
  return `${bareClock(moment)} ${parts.find(({ type }) => type === "timeZoneName")?.value}`;
}

// What figures were made from: the ledger, or the lake as it was then.
/** @param {Api.Looked} looked */
export function lookedText({ into, at }) {
  if (into === "record" || at === null) return textOf("looked.record");
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  return seconds < 90 ? textOf("looked.ago", { seconds }) : textOf("looked.at", { at: clock(at) });
}

/** @type {(count: number, noun: import("./texts.js").Noun) => string} */
export const plural = (count, noun) => textOf(`count.${noun}`, { count });

// What an expectation came to for a partition.
/** @type {Record<Api.Outcome, { mark: string, palette: string, text: string }>} */
export const OUTCOMES = withTexts("outcome", {
  failed: { mark: "✕", palette: "failed" },
  waived: { mark: "≈", palette: "warning" },
  warning: { mark: "!", palette: "warning" },
  info: { mark: "i", palette: "gray" },
  passed: { mark: "✓", palette: "success" },
});

// A pipeline's place in Airflow is its DAG, or DAG~PIPELINE where the DAG has several.

/** @param {string} place */
const partsOf = (place) => {
  const [dag = "", pipeline = ""] = place.split("~");
  return { dag, pipeline };
};

/** @param {string} place */
export const dagOf = (place) => partsOf(place).dag;

// The place of a pipeline that an address names, if it does.
/** @type {(dagId: string, pipeline: string | undefined) => string} */
export const placeOf = (dagId, pipeline) => (pipeline ? `${dagId}~${pipeline}` : dagId);

// What the fields of a run's form about a restore are for, in a DAG with several pipelines.
/** @type {(place: string) => Record<string, string>} */
export function restoreOf(place) {
  const { pipeline } = partsOf(place);
  return pipeline ? { restore_pipeline: pipeline } : {};
}

// A page of Airflow's about a DAG, or about one of its pipelines.
/** @type {(place: string, path: string) => string} */
export function pageOf(place, path) {
  const { dag, pipeline } = partsOf(place);
  const url = new URL(`../../dags/${encodeURIComponent(dag)}${path}`, import.meta.url);
  if (pipeline) url.searchParams.set("pipeline", pipeline);
  return url.href;
}

// The place and Airflow's id of a run that the ledger knows by this id.
/** @param {string} runId */
export function runOf(runId) {
  const cut = runId.indexOf("/");
  return { place: runId.slice(0, Math.max(cut, 0)), run: runId.slice(cut + 1) };
}

// The page of the run that computed something, in Airflow; null for a run of a command.
/** @param {string} runId */
export function runPage(runId) {
  const { place, run } = runOf(runId);
  return !place || run.startsWith("cli__") ? null : pageOf(place, `/runs/${encodeURIComponent(run)}/plugin/stagehold`);
}
