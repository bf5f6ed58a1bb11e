// Calls to Stagehold's web API. Same origin, so Airflow's own cookie says who asks.

const API = new URL("../api/", import.meta.url);

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const runUrl = (dagId, runId, what) =>
  new URL(`dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}/${what}`, API);

const call = async (url, options) =>
  read(await fetch(url, { credentials: "same-origin", cache: "no-store", ...options }));

async function read(answer) {
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new Refused(answer.status, body.detail ?? `The server answered ${answer.status}.`);
}

// What the page shows, with its ETag; null when it is still what `known` names.
export async function fetchGrid(dagId, runId, known) {
  const url = runUrl(dagId, runId, "grid");
  const headers = known ? { "If-None-Match": known } : {};
  const answer = await fetch(url, { cache: "no-store", credentials: "same-origin", headers });
  if (answer.status === 304) return null;
  return { grid: await read(answer), tag: answer.headers.get("ETag") };
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

const post = (dagId, runId, what, body) =>
  call(runUrl(dagId, runId, what), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

export const resume = (dagId, runId) => post(dagId, runId, "resume", { dry_run: false });

export const waive = (dagId, runId, wish) => post(dagId, runId, "waive", wish);
