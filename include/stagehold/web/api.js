// @ts-check
// Calls to Stagehold's web API. Same origin, so Airflow's own cookie says who asks.

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

/** @type {(dagId: string, what: string, query?: string[][] | Record<string, string>) => URL} */
const dagUrl = (dagId, what, query) => apiUrl(`dags/${encodeURIComponent(dagId)}/${what}`, query);

/** @type {(dagId: string, runId: string, what: string, query?: Record<string, string>) => URL} */
const runUrl = (dagId, runId, what, query) => dagUrl(dagId, `runs/${encodeURIComponent(runId)}/${what}`, query);

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

// One pipeline.

/** @type {(before: string | null) => Record<string, string> | undefined} */
const older = (before) => (before === null ? undefined : { before });

// The newest intervals of a pipeline that a query asks for, or those before one of them.
/** @type {(dagId: string, query: Record<string, string>, known: Tag) => Promise<Fresh<Api.IntervalPage>>} */
export const fetchIntervals = (dagId, query, known) => fetchUnlessKnown(dagUrl(dagId, "intervals", query), known);

// What the newest runs that a query asks for did about each stage, or those that began before one of them.
/** @type {(dagId: string, query: Record<string, string>, known: Tag) => Promise<Fresh<Api.RunMatrixPage>>} */
export const fetchRunMatrix = (dagId, query, known) => fetchUnlessKnown(dagUrl(dagId, "run-matrix", query), known);

/** @type {(dagId: string, one: string, other: string) => Promise<Api.IntervalComparison>} */
export const fetchComparison = (dagId, one, other) => call(dagUrl(dagId, "comparison", { one, other }));

/** @type {(dagId: string, wish: Api.PinRequest) => Promise<Api.PinAnswer>} */
export const pinIntervals = (dagId, wish) => post(dagUrl(dagId, "pins"), wish);

// Which of those would come out differently now.
/** @type {(dagId: string, before: string | null, known: Tag) => Promise<Fresh<Api.Staleness>>} */
export const fetchStale = (dagId, before, known) => fetchUnlessKnown(dagUrl(dagId, "stale", older(before)), known);

/** @type {(dagId: string) => Promise<Api.PipelineHistory>} */
export const fetchGrowth = (dagId) => call(dagUrl(dagId, "history"));

/** @type {(dagId: string) => Promise<Api.PipelineRecoveries>} */
export const fetchRecoveries = (dagId) => call(dagUrl(dagId, "recoveries"));

/** @type {(dagId: string, known: Tag) => Promise<Fresh<Api.GateRates>>} */
export const fetchGateRates = (dagId, known) => fetchUnlessKnown(dagUrl(dagId, "gate-rates"), known);

/** @typedef {{ limit: number, offset: number }} Part which of many checkpoints */

/** @type {(dagId: string, part: Part, known: Tag) => Promise<Fresh<Api.CheckpointPage>>} */
export const fetchCheckpoints = (dagId, { limit, offset }, known) =>
  fetchUnlessKnown(dagUrl(dagId, "checkpoints", { limit: `${limit}`, offset: `${offset}` }), known);

/** @type {(dagId: string, run: string, number: number) => Promise<Api.CheckpointAnswers>} */
export const fetchCheckpoint = (dagId, run, number) => call(dagUrl(dagId, `checkpoints/${number}`, { run }));

/**
 * Which intervals, which stages and what of them.
 * @typedef {Required<Pick<Api.NewBackfill, "first" | "last" | "stages" | "restore_from_stage" | "only">>} BackfillWish
 */

// The plan, or how far it is, as long as it is made.
/** @type {(dagId: string, wish: BackfillWish) => Promise<Api.ShownBackfill | Api.PlanUnderWay>} */
export function fetchBackfill(dagId, { first, last, stages, restore_from_stage, only }) {
  const asked = [["first", first], ["last", last], ...stages.map((stage) => ["stages", stage])];
  if (restore_from_stage) asked.push(["restore_from_stage", restore_from_stage]);
  if (only) asked.push(["only", only]);
  return call(dagUrl(dagId, "backfill", asked));
}

/** @type {(dagId: string, wish: Api.NewBackfill) => Promise<Api.BegunBackfill>} */
export const startBackfill = (dagId, wish) => post(dagUrl(dagId, "backfill"), wish);

/** @type {(dagId: string) => Promise<Api.SavepointLine[]>} */
export const fetchSavepoints = (dagId) => call(dagUrl(dagId, "savepoints"));

/** @type {(dagId: string) => Promise<Api.SavepointChoices>} */
export const fetchSavepointChoices = (dagId) => call(dagUrl(dagId, "savepoint-choices"));

/** @type {(dagId: string, runId: string, wish: Api.NewSavepoint) => Promise<Api.SavepointStatus>} */
export const makeSavepoint = (dagId, runId, wish) => post(runUrl(dagId, runId, "savepoints"), wish);

/** @type {(dagId: string, name: string) => Promise<Api.SavepointStatus>} */
export const fetchSavepointStatus = (dagId, name) =>
  call(dagUrl(dagId, `savepoint_requests/${encodeURIComponent(name)}`));

/** @type {(dagId: string, name: string) => Promise<Api.Disposed>} */
export const disposeOfSavepoint = (dagId, name) =>
  call(dagUrl(dagId, `savepoints/${encodeURIComponent(name)}`), {
    method: "DELETE",
    headers: { "Content-Type": "application/json" },
  });

// Airflow's own route: it checks the rights, and its log says who started the run.
/** @type {(dagId: string, conf: Record<string, string>) => Promise<{ dag_run_id: string }>} */
export const startRun = (dagId, conf) =>
  post(new URL(`../../api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`, import.meta.url), {
    conf,
    logical_date: null,
  });

// One run.

/** @type {(dagId: string, runId: string, known: Tag) => Promise<Fresh<Api.RunGrid>>} */
export const fetchGrid = (dagId, runId, known) => fetchUnlessKnown(runUrl(dagId, runId, "grid"), known);

// Who works for it now.
/** @type {(dagId: string, runId: string) => Promise<Fresh<Api.LeasesAnswer>>} */
export const fetchLeases = (dagId, runId) => fetchUnlessKnown(runUrl(dagId, runId, "leases"), null);

/** @type {(dagId: string, runId: string, stage: string, part: Api.StripPart) => Promise<Api.PartitionCell[]>} */
export const fetchCells = (dagId, runId, stage, { first, last }) =>
  call(runUrl(dagId, runId, `stages/${encodeURIComponent(stage)}/cells`, { first: `${first}`, last: `${last}` }));

/** @type {(dagId: string, runId: string) => Promise<Api.RunVerdicts>} */
export const fetchGates = (dagId, runId) => call(runUrl(dagId, runId, "gates"));

/** @type {(dagId: string, runId: string, stage: string, expectation: string) => Promise<Api.ObservedHistory>} */
export const fetchHistory = (dagId, runId, stage, expectation) =>
  call(runUrl(dagId, runId, "gates/history", { stage, expectation }));

/** @type {(dagId: string, runId: string) => Promise<Api.RunHistory>} */
export const fetchRunHistory = (dagId, runId) => call(runUrl(dagId, runId, "timeline"));

/** @type {(dagId: string, runId: string) => string} */
export const docsUrl = (dagId, runId) => runUrl(dagId, runId, "docs/index.html").href;

/** @type {(dagId: string, runId: string) => Promise<Api.DocsMade>} */
export const makeDocs = (dagId, runId) => post(runUrl(dagId, runId, "gates/docs"), {});

// What Resume would do.
/** @type {(dagId: string, runId: string) => Promise<Api.ResumePreview>} */
export const fetchResumePreview = (dagId, runId) => call(runUrl(dagId, runId, "plan"));

/** @type {(dagId: string, runId: string) => Promise<Api.ResumeAnswer>} */
export const resume = (dagId, runId) => post(runUrl(dagId, runId, "resume"), { dry_run: false });

// Ends it behind the waves that are under way.
/** @type {(dagId: string, runId: string) => Promise<Api.StopAnswer>} */
export const suspend = (dagId, runId) => post(runUrl(dagId, runId, "suspend"), {});

// Ends it at once.
/** @type {(dagId: string, runId: string) => Promise<Api.StopAnswer>} */
export const cancel = (dagId, runId) => post(runUrl(dagId, runId, "cancel"), {});

/** @type {(dagId: string, runId: string, stage: string) => Promise<Api.ResumeAnswer>} */
export const again = (dagId, runId, stage) => post(runUrl(dagId, runId, "again"), { stages: [stage] });

/** @type {(dagId: string, runId: string, wish: Api.WaiveRequest) => Promise<Api.WaiveAnswer>} */
export const waive = (dagId, runId, wish) => post(runUrl(dagId, runId, "waive"), wish);
