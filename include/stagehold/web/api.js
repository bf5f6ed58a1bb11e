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
  const text = typeof body.detail === "string" ? body.detail : `The server answered ${answer.status}.`;
  throw new Refused(answer.status, text);
}

export const fetchGrid = (dagId, runId) => call(runUrl(dagId, runId, "grid"));

export const resume = (dagId, runId) =>
  call(runUrl(dagId, runId, "resume"), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ dry_run: false }),
  });
