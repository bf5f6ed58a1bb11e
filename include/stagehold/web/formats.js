// @ts-check
// How all pages write counts, times and outcomes, and where the page of a run is. No markup here.

/**
 * @param {number} count
 * @param {string} noun
 */
export const plural = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;

/** @param {number} count */
export function bytes(count) {
  if (count < 1024) return `${count} B`;
  const power = Math.min(Math.floor(Math.log2(count) / 10), 4);
  return `${(count / 1024 ** power).toFixed(1)} ${["", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** @param {number} seconds */
export function timeToGo(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/**
 * @param {string} from
 * @param {string} to
 */
export function duration(from, to) {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

// Made once: a page tells hundreds of moments.
const MOMENT = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

/** @param {string | number} moment */
export const clock = (moment) => MOMENT.format(new Date(moment));

// What figures were made from: the ledger, or the lake as it was then.
/** @param {Api.Looked} looked */
export function lookedText({ into, at }) {
  if (into === "record" || at === null) return "as recorded";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000));
  return seconds < 90 ? `as found ${seconds} s ago` : `as found ${clock(at)}`;
}

// What an expectation came to for a partition.
/**
 * @typedef {{ mark: string, palette: string, text: string }} Look
 * @type {Record<Api.Outcome, Look>}
 */
export const OUTCOMES = {
  failed: { mark: "✕", palette: "failed", text: "not met: blocks" },
  waived: { mark: "≈", palette: "warning", text: "not met, and waived" },
  warning: { mark: "!", palette: "warning", text: "not met: warning" },
  info: { mark: "i", palette: "gray", text: "not met: info" },
  passed: { mark: "✓", palette: "success", text: "met" },
};

// The page of the run that computed something, in Airflow; null for a run of a command.
/** @param {string} runId */
export function runPage(runId) {
  const cut = runId.indexOf("/");
  const [dag, run] = [runId.slice(0, cut), runId.slice(cut + 1)];
  return cut < 0 || run.startsWith("cli__")
    ? null
    : new URL(`../../dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}/plugin/stagehold`, import.meta.url)
        .href;
}
