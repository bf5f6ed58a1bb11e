// @ts-check
// Calls to Stagehold's web API. Same origin, so Airflow's own cookie says who asks.

import { dagOf } from "./formats.js";
import { textOf } from "./texts.js";

const API = new URL("../api/", import.meta.url);

export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} text
   */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** @type {(path: string, query?: string[][] | Record<string, string>) => URL} */
const apiUrl = (path, query) => {
  const url = new URL(path, API);
  if (query) url.search = new URLSearchParams(query).toString();
  return url;
};

/** @type {(place: string, what: string, query?: string[][] | Record<string, string>) => URL} */
const dagUrl = (place, what, query) => apiUrl(`dags/${encodeURIComponent(place)}/${what}`, query);

/** @type {(place: string, runId: string, what: string, query?: Record<string, string>) => URL} */
const runUrl = (place, runId, what, query) => dagUrl(place, `runs/${encodeURIComponent(runId)}/${what}`, query);

/** @type {(url: URL, options?: RequestInit) => Promise<any>} */
const call = async (url, options) =>
  read(await fetch(url, { credentials: "same-origin", cache: "no-store", ...options }));

/** @type {(url: URL, body: unknown) => Promise<any>} */
const post = (url, body) =>
  call(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** @param {Response} answer */
async function read(answer) {
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new Refused(answer.status, body.detail ?? textOf("page.answered", { status: `${answer.status}` }));
}

/**
 * @template T
 * @typedef {{ found: T, tag: string | null } | { lookedAt: string | null }} Fresh
 */

/** @typedef {string | null} Tag the ETag of an answer that is there, if any is */

// An answer with its ETag; of one that is still what `known` names only when that was looked at, if the server says so.
/** @type {(url: URL, known: Tag) => Promise<Fresh<any>>} */
async function fetchUnlessKnown(url, known) {
  /** @type {HeadersInit} */
  const headers = known ? { "If-None-Match": known } : {};
  const answer = await fetch(url, { cache: "no-store", credentials: "same-origin", headers });
  if (answer.status === 304) return { lookedAt: answer.headers.get("Stagehold-Looked-At") };
  return { found: await read(answer), tag: answer.headers.get("ETag") };
}

// All pipelines.

// The pipelines that a query asks for.
/** @type {(query: Record<string, string>, known: Tag) => Promise<Fresh<Api.Overview>>} */
export const fetchOverview = (query, known) => fetchUnlessKnown(apiUrl("overview", query), known);

/** @type {(names: string[]) => Promise<Api.StaleOverview>} */
export const fetchStaleOverview = (names) =>
  call(
    apiUrl(
      "overview/stale",
      names.map((name) => ["names", name]),
    ),
  );

/** @type {() => Promise<Api.SizesSeen>} */
export const fetchSizes = () => call(apiUrl("overview/sizes"));

// One pipeline, by its place; of a DAG with several, the first is shown if none is named.

/** @type {(before: string | null) => Record<string, string> | undefined} */
const older = (before) => (before === null ? undefined : { before });

// The newest intervals of a pipeline that a query asks for, or those before one of them.
/** @type {(place: string, query: Record<string, string>, known: Tag) => Promise<Fresh<Api.IntervalPage>>} */
export const fetchIntervals = (place, query, known) => fetchUnlessKnown(dagUrl(place, "intervals", query), known);

// What the newest runs that a query asks for did about each stage, or those that began before one of them.
/** @type {(place: string, query: Record<string, string>, known: Tag) => Promise<Fresh<Api.RunMatrixPage>>} */
export const fetchRunMatrix = (place, query, known) => fetchUnlessKnown(dagUrl(place, "run-matrix", query), known);

/** @type {(place: string, one: string, other: string) => Promise<Api.IntervalComparison>} */
export const fetchComparison = (place, one, other) => call(dagUrl(place, "comparison", { one, other }));

/** @type {(place: string, wish: Api.PinRequest) => Promise<Api.PinAnswer>} */
export const pinIntervals = (place, wish) => post(dagUrl(place, "pins"), wish);

// Which of those would come out differently now.
/** @type {(place: string, before: string | null, known: Tag) => Promise<Fresh<Api.Staleness>>} */
export const fetchStale = (place, before, known) => fetchUnlessKnown(dagUrl(place, "stale", older(before)), known);

/** @type {(place: string) => Promise<Api.PipelineHistory>} */
export const fetchGrowth = (place) => call(dagUrl(place, "history"));

/** @type {(place: string) => Promise<Api.PipelineRecoveries>} */
export const fetchRecoveries = (place) => call(dagUrl(place, "recoveries"));

/** @type {(place: string, known: Tag) => Promise<Fresh<Api.GateRates>>} */
export const fetchGateRates = (place, known) => fetchUnlessKnown(dagUrl(place, "gate-rates"), known);

/** @typedef {{ limit: number, offset: number }} Part which of many checkpoints */

/** @type {(place: string, part: Part, known: Tag) => Promise<Fresh<Api.CheckpointPage>>} */
export const fetchCheckpoints = (place, { limit, offset }, known) =>
  fetchUnlessKnown(dagUrl(place, "checkpoints", { limit: `${limit}`, offset: `${offset}` }), known);

/** @type {(place: string, run: string, number: number) => Promise<Api.CheckpointAnswers>} */
export const fetchCheckpoint = (place, run, number) => call(dagUrl(place, `checkpoints/${number}`, { run }));

/**
 * Which intervals, which stages and what of them.
 * @typedef {Required<Pick<Api.NewBackfill, "first" | "last" | "stages" | "restore_from_stage" | "only">>} BackfillWish
 */

// The plan, or how far it is, as long as it is made.
/** @type {(place: string, wish: BackfillWish) => Promise<Api.ShownBackfill | Api.PlanUnderWay>} */
export function fetchBackfill(place, { first, last, stages, restore_from_stage, only }) {
  const asked = [["first", first], ["last", last], ...stages.map((stage) => ["stages", stage])];
  if (restore_from_stage) asked.push(["restore_from_stage", restore_from_stage]);
  if (only) asked.push(["only", only]);
  return call(dagUrl(place, "backfill", asked));
}

/** @type {(place: string, wish: Api.NewBackfill) => Promise<Api.BegunBackfill>} */
export const startBackfill = (place, wish) => post(dagUrl(place, "backfill"), wish);

/** @type {(place: string) => Promise<Api.SavepointLine[]>} */
export const fetchSavepoints = (place) => call(dagUrl(place, "savepoints"));

/** @type {(place: string) => Promise<Api.SavepointChoices>} */
export const fetchSavepointChoices = (place) => call(dagUrl(place, "savepoint-choices"));

/** @type {(place: string, runId: string, wish: Api.NewSavepoint) => Promise<Api.SavepointStatus>} */
export const makeSavepoint = (place, runId, wish) => post(runUrl(place, runId, "savepoints"), wish);

/** @type {(place: string, name: string) => Promise<Api.SavepointStatus>} */
export const fetchSavepointStatus = (place, name) =>
  call(dagUrl(place, `savepoint_requests/${encodeURIComponent(name)}`));

/** @type {(place: string, name: string) => Promise<Api.Disposed>} */
export const disposeOfSavepoint = (place, name) =>
  call(dagUrl(place, `savepoints/${encodeURIComponent(name)}`), {
    method: "DELETE",
    headers: { "Content-Type": "application/json" },
  });

// Airflow's own route: it checks the rights, and its log says who started the run.
/** @type {(place: string, conf: Record<string, string>) => Promise<{ dag_run_id: string }>} */
export const startRun = (place, conf) =>
  post(new URL(`../../api/v2/dags/${encodeURIComponent(dagOf(place))}/dagRuns`, import.meta.url), {
    conf,
    logical_date: null,
  });

// One run.

/** @type {(place: string, runId: string, known: Tag) => Promise<Fresh<Api.RunGrid>>} */
export const fetchGrid = (place, runId, known) => fetchUnlessKnown(runUrl(place, runId, "grid"), known);

// Who works for it now.
/** @type {(place: string, runId: string) => Promise<Fresh<Api.LeasesAnswer>>} */
export const fetchLeases = (place, runId) => fetchUnlessKnown(runUrl(place, runId, "leases"), null);

/** @type {(place: string, runId: string, stage: string, part: Api.StripPart) => Promise<Api.PartitionCell[]>} */
export const fetchCells = (place, runId, stage, { first, last }) =>
  call(runUrl(place, runId, `stages/${encodeURIComponent(stage)}/cells`, { first: `${first}`, last: `${last}` }));

/** @type {(place: string, runId: string) => Promise<Api.RunVerdicts>} */
export const fetchGates = (place, runId) => call(runUrl(place, runId, "gates"));

/** @type {(place: string, runId: string, stage: string, expectation: string) => Promise<Api.ObservedHistory>} */
export const fetchHistory = (place, runId, stage, expectation) =>
  call(runUrl(place, runId, "gates/history", { stage, expectation }));

/** @type {(place: string, runId: string) => Promise<Api.RunHistory>} */
export const fetchRunHistory = (place, runId) => call(runUrl(place, runId, "timeline"));

/** @type {(place: string, runId: string) => string} */
export const docsUrl = (place, runId) => runUrl(place, runId, "docs/index.html").href;

/** @type {(place: string, runId: string) => Promise<Api.DocsMade>} */
export const makeDocs = (place, runId) => post(runUrl(place, runId, "gates/docs"), {});

// What Resume would do.
/** @type {(place: string, runId: string) => Promise<Api.ResumePreview>} */
export const fetchResumePreview = (place, runId) => call(runUrl(place, runId, "plan"));

/** @type {(place: string, runId: string) => Promise<Api.ResumeAnswer>} */
export const resume = (place, runId) => post(runUrl(place, runId, "resume"), { dry_run: false });

// Ends it behind the waves that are under way.
/** @type {(place: string, runId: string) => Promise<Api.StopAnswer>} */
export const suspend = (place, runId) => post(runUrl(place, runId, "suspend"), {});

// Ends it at once.
/** @type {(place: string, runId: string) => Promise<Api.StopAnswer>} */
export const cancel = (place, runId) => post(runUrl(place, runId, "cancel"), {});

/** @type {(place: string, runId: string, stage: string) => Promise<Api.ResumeAnswer>} */
export const again = (place, runId, stage) => post(runUrl(place, runId, "again"), { stages: [stage] });

/** @type {(place: string, runId: string, wish: Api.WaiveRequest) => Promise<Api.WaiveAnswer>} */
export const waive = (place, runId, wish) => post(runUrl(place, runId, "waive"), wish);
