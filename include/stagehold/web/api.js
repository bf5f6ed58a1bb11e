// Calls to Stagehold's web API. Same origin, so Airflow's own cookie says who asks.

const API = new URL("../api/", import.meta.url);

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const dagUrl = (dagId, what) => new URL(`dags/${encodeURIComponent(dagId)}/${what}`, API);

const runUrl = (dagId, runId, what) => dagUrl(dagId, `runs/${encodeURIComponent(runId)}/${what}`);

const call = async (url, options) =>
  read(await fetch(url, { credentials: "same-origin", cache: "no-store", ...options }));

async function read(answer) {
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new Refused(answer.status, body.detail ?? `The server answered ${answer.status}.`);
}

// An answer with its ETag; of one that is still what `known` names only when that was looked at, if the server says so.
async function fetchUnlessKnown(url, known) {
  const headers = known ? { "If-None-Match": known } : {};
  const answer = await fetch(url, { cache: "no-store", credentials: "same-origin", headers });
  if (answer.status === 304) return { lookedAt: answer.headers.get("Stagehold-Looked-At") };
  return { found: await read(answer), tag: answer.headers.get("ETag") };
}

export const fetchGrid = (dagId, runId, known) => fetchUnlessKnown(runUrl(dagId, runId, "grid"), known);

// The newest intervals of a pipeline, or those before one of them.
export function fetchIntervals(dagId, before, known) {
  const url = dagUrl(dagId, "intervals");
  if (before !== null) url.search = new URLSearchParams({ before });
  return fetchUnlessKnown(url, known);
}

// Which of those would come out differently now.
export function fetchStale(dagId, before, known) {
  const url = dagUrl(dagId, "stale");
  if (before !== null) url.search = new URLSearchParams({ before });
  return fetchUnlessKnown(url, known);
}

export const fetchGrowth = (dagId) => call(dagUrl(dagId, "history"));

export const fetchRecoveries = (dagId) => call(dagUrl(dagId, "recoveries"));

// `wish` says which intervals, which stages and what of them.
export function fetchBackfill(dagId, { first, last, stages, restore_from_stage, only }) {
  const url = dagUrl(dagId, "backfill");
  const asked = [["first", first], ["last", last], ...stages.map((stage) => ["stages", stage])];
  if (restore_from_stage) asked.push(["restore_from_stage", restore_from_stage]);
  if (only) asked.push(["only", only]);
  url.search = new URLSearchParams(asked);
  return call(url);
}

export function fetchCells(dagId, runId, stage, { first, last }) {
  const url = runUrl(dagId, runId, `stages/${encodeURIComponent(stage)}/cells`);
  url.search = new URLSearchParams({ first, last });
  return call(url);
}

export const fetchGates = (dagId, runId) => call(runUrl(dagId, runId, "gates"));

export const fetchRunHistory = (dagId, runId) => call(runUrl(dagId, runId, "timeline"));

export const docsUrl = (dagId, runId) => runUrl(dagId, runId, "docs/index.html").href;

export function fetchHistory(dagId, runId, stage, expectation) {
  const url = runUrl(dagId, runId, "gates/history");
  url.search = new URLSearchParams({ stage, expectation });
  return call(url);
}

const post = (url, body) =>
  call(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const resume = (dagId, runId) => post(runUrl(dagId, runId, "resume"), { dry_run: false });

export const again = (dagId, runId, stage) => post(runUrl(dagId, runId, "again"), { stages: [stage] });

export const waive = (dagId, runId, wish) => post(runUrl(dagId, runId, "waive"), wish);

export const startBackfill = (dagId, wish) => post(dagUrl(dagId, "backfill"), wish);

export const fetchOverview = (known) => fetchUnlessKnown(new URL("overview", API), known);

export const fetchStaleOverview = () => call(new URL("overview/stale", API));

export const fetchSizes = () => call(new URL("overview/sizes", API));

export function fetchCheckpoints(dagId, { limit, offset }, known) {
  const url = dagUrl(dagId, "checkpoints");
  url.search = new URLSearchParams({ limit, offset });
  return fetchUnlessKnown(url, known);
}

export function fetchCheckpoint(dagId, run, number) {
  const url = dagUrl(dagId, `checkpoints/${number}`);
  url.search = new URLSearchParams({ run });
  return call(url);
}

export const fetchGateRates = (dagId, known) => fetchUnlessKnown(dagUrl(dagId, "gate-rates"), known);

const savepointUrl = (dagId, name) => dagUrl(dagId, `savepoints/${encodeURIComponent(name)}`);

export const fetchSavepoints = (dagId) => call(dagUrl(dagId, "savepoints"));

export const fetchSavepointChoices = (dagId) => call(dagUrl(dagId, "savepoint-choices"));

export const makeSavepoint = (dagId, runId, wish) => post(runUrl(dagId, runId, "savepoints"), wish);

export const fetchSavepointStatus = (dagId, name) =>
  call(dagUrl(dagId, `savepoint_requests/${encodeURIComponent(name)}`));

export const disposeOfSavepoint = (dagId, name) =>
  call(savepointUrl(dagId, name), { method: "DELETE", headers: { "Content-Type": "application/json" } });

// Airflow's own route: it checks the rights, and its log says who started the run.
export const startRun = (dagId, conf) =>
  post(new URL(`../../api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`, import.meta.url), {
    conf,
    logical_date: null,
  });
