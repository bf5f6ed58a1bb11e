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

async function call(url, options) {
  const answer = await fetch(url, { credentials: "same-origin", cache: "no-store", ...options });
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new Refused(answer.status, body.detail ?? `The server answered ${answer.status}.`);
}

export const fetchGrid = (dagId, runId) => call(runUrl(dagId, runId, "grid"));

export const fetchGates = (dagId, runId) => call(runUrl(dagId, runId, "gates"));

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
