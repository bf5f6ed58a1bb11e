// @ts-check
// The Stagehold tab of a DAG, loaded by Airflow's UI as a React app: its intervals, what to compute again of them, and
// how they grew. Plain modules, no build step, as run_page.js.

import { refreshAirflow } from "../airflow_cache.js";
import { useAirflowChoices } from "../airflow_choices.js";
import { fetchIntervals, fetchStale } from "../api.js";
import { usePolled } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { html, Nothing, Page } from "../ui.js";
import { useUrlState } from "../url_state.js";
import { Backfill } from "./backfill.js";
import { Checkpoints } from "./checkpoints.js";
import { Comparison } from "./comparison.js";
import { GateRates } from "./gate_rates.js";
import { useTurns } from "./grid_parts.js";
import { GrowthCharts } from "./growth_charts.js";
import { IntervalFilters } from "./interval_filters.js";
import { IntervalGrid } from "./interval_grid.js";
import { Recoveries } from "./recoveries.js";
import { RunMatrix } from "./run_matrix.js";
import { Savepoints } from "./savepoints.js";
import { Summary } from "./summary.js";

const { useRef, useState } = globalThis.React;

const ASKED = ["look", "first", "last"];

/** @param {Api.IntervalPage} page */
const hurries = (page) => page.intervals.some((row) => row.run?.active);

// Something of the newest intervals began or ended.
/** @param {Api.IntervalPage} page */
const stampOf = (page) =>
  [page.total, ...page.intervals.map((row) => `${row.interval} ${row.run?.run_id} ${row.run?.state}`)].join("|");

// A page of intervals; what was there stays until the next one comes.
/**
 * @param {string} dagId
 * @param {import("../url_state.js").Said} asked
 */
function useIntervals(dagId, asked) {
  const key = `${dagId} ${JSON.stringify(asked)}`;
  const { before, newer, older } = useTurns(key);
  const query = before === null ? asked : { ...asked, before };
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchIntervals(dagId, query, known);
  const { found, ...rest } = usePolled(`${key} ${before}`, ask, hurries);
  const last = useRef(/** @type {Api.IntervalPage | null} */ (null));
  if (found !== null) last.current = found;
  const page = last.current?.dag_id === dagId ? last.current : null;
  return { before, page, newer, older: older(page?.following), turning: found === null, ...rest };
}

/** @param {Api.Staleness} stale */
const beingPlanned = (stale) => stale.planned_at === null;

// Asked for apart, as it takes a plan of each interval to know.
/**
 * @param {string} dagId
 * @param {string | null} before
 */
function useStale(dagId, before) {
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchStale(dagId, before, known);
  const { found } = usePolled(`${dagId} ${before}`, ask, beingPlanned);
  return found;
}

/** @type {(asked: boolean, turned: boolean) => string} */
function whichOf(asked, turned) {
  if (asked) return textOf("summary.asked");
  return turned ? textOf("summary.older") : textOf("summary.newer");
}

/** @param {{ dagId: string }} props */
function PipelinePage({ dagId }) {
  useAirflowChoices();
  const name = textOf("page.pipeline");
  const [asked, say] = useUrlState(ASKED);
  const { before, page, problem, load, hurry, ...turns } = useIntervals(dagId, asked);
  const stale = useStale(dagId, before);
  const [range, setRange] = useState(/** @type {import("./interval_grid.js").Range | null} */ (null));
  if (page === null)
    return html`<${Nothing} name=${name} problem=${problem} title=${textOf("page.unshown.pipeline")} />`;
  const started = () => {
    hurry();
    refreshAirflow();
    return load();
  };
  // The backfill's card is below: it is brought into view, with the focus on its button.
  const plan = () => {
    const card = document.querySelector("[data-testid=backfill]");
    card?.scrollIntoView({ block: "start" });
    /** @type {HTMLElement | null | undefined} */
    const button = card?.querySelector("button[type=submit]");
    button?.focus({ preventScroll: true });
  };
  const which = whichOf(Object.keys(asked).length > 0, turns.newer !== null);
  const stamp = turns.newer ? "older" : stampOf(page);
  return html`
    <${Page} data-testid="stagehold-intervals" name=${name} problem=${problem}>
      <${Summary} page=${page} stale=${stale} which=${which} />
      <${IntervalFilters} asked=${asked} page=${page} say=${say} />
      <${IntervalGrid} onPinned=${load} onPlan=${plan} onRange=${setRange} page=${page} range=${range} stale=${stale}
        ...${turns} />
      ${
        range &&
        range.first !== range.last &&
        html`
          <${Comparison} dagId=${dagId} key="${range.first} ${range.last}" one=${range.first} other=${range.last} />`
      }
      <${RunMatrix} dagId=${dagId} dates=${asked} />
      <${Backfill} dagId=${dagId} key=${dagId} onStarted=${started} page=${page} range=${range} />
      <${Checkpoints} dagId=${dagId} />
      <${Savepoints} dagId=${dagId} />
      <${GateRates} dagId=${dagId} />
      <${GrowthCharts} dagId=${dagId} stamp=${stamp} />
      <${Recoveries} dagId=${dagId} stamp=${stamp} />
    <//>`;
}

globalThis.AirflowPlugin = PipelinePage;
