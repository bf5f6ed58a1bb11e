// @ts-check
// The Stagehold tab of a DAG, loaded by Airflow's UI as a React app: its intervals, what to compute again of them, and
// how they grew. Plain modules, no build step, as run_page.js.

import { refreshAirflow } from "../airflow_cache.js";
import { useAirflowChoices } from "../airflow_choices.js";
import { fetchIntervals, fetchStale } from "../api.js";
import { placeOf } from "../formats.js";
import { usePolled } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { html, Nothing, Page, Pipelines } from "../ui.js";
import { CHOSEN, useUrlState } from "../url_state.js";
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

// A DAG with several pipelines, of which none is named, is shown by the first.
/** @type {(page: Api.IntervalPage, named: string) => boolean} */
const isOf = ({ dag_id, place, places }, named) =>
  named === place || (named === dag_id && place === Object.values(places)[0]);

/** @param {Api.IntervalPage} page */
const hurries = (page) => page.intervals.some((row) => row.run?.active);

// Something of the newest intervals began or ended.
/** @param {Api.IntervalPage} page */
const stampOf = (page) =>
  [page.total, ...page.intervals.map((row) => `${row.interval} ${row.run?.run_id} ${row.run?.state}`)].join("|");

// A page of intervals; what was there stays until the next one comes.
/**
 * @param {string} place
 * @param {import("../url_state.js").Said} asked
 */
function useIntervals(place, asked) {
  const key = `${place} ${JSON.stringify(asked)}`;
  const { before, newer, older } = useTurns(key);
  const query = before === null ? asked : { ...asked, before };
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchIntervals(place, query, known);
  const { found, ...rest } = usePolled(`${key} ${before}`, ask, hurries);
  const last = useRef(/** @type {Api.IntervalPage | null} */ (null));
  if (found !== null) last.current = found;
  const page = last.current && isOf(last.current, place) ? last.current : null;
  return { before, page, newer, older: older(page?.following), turning: found === null, ...rest };
}

/** @param {Api.Staleness} stale */
const beingPlanned = (stale) => stale.planned_at === null;

// Asked for apart, as it takes a plan of each interval to know.
/**
 * @param {string} place
 * @param {string | null} before
 */
function useStale(place, before) {
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchStale(place, before, known);
  const { found } = usePolled(`${place} ${before}`, ask, beingPlanned);
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
  const [{ pipeline, ...asked }, say] = useUrlState([...ASKED, ...CHOSEN]);
  const named = placeOf(dagId, pipeline);
  const { before, page, problem, load, hurry, ...turns } = useIntervals(named, asked);
  const stale = useStale(named, before);
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
  const { place } = page;
  const which = whichOf(Object.keys(asked).length > 0, turns.newer !== null);
  const stamp = turns.newer ? "older" : stampOf(page);
  return html`
    <${Page} data-testid="stagehold-intervals" name=${name} problem=${problem}>
      <${Pipelines} chosen=${page.pipeline} places=${page.places} say=${say} />
      <${Summary} page=${page} stale=${stale} which=${which} />
      <${IntervalFilters} asked=${asked} page=${page} say=${say} />
      <${IntervalGrid} onPinned=${load} onPlan=${plan} onRange=${setRange} page=${page} range=${range} stale=${stale}
        ...${turns} />
      ${
        range &&
        range.first !== range.last &&
        html`
          <${Comparison} key="${range.first} ${range.last}" one=${range.first} other=${range.last} place=${place} />`
      }
      <${RunMatrix} dates=${asked} place=${place} />
      <${Backfill} key=${place} onStarted=${started} page=${page} place=${place} range=${range} />
      <${Checkpoints} place=${place} />
      <${Savepoints} place=${place} />
      <${GateRates} place=${place} />
      <${GrowthCharts} place=${place} stamp=${stamp} />
      <${Recoveries} place=${place} stamp=${stamp} />
    <//>`;
}

globalThis.AirflowPlugin = PipelinePage;
