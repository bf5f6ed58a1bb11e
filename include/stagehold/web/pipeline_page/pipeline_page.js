// The Stagehold tab of a DAG, loaded by Airflow's UI as a React app: its intervals, what to compute again of them, and
// how they grew. Plain modules, no build step, as run_page.js.

import { refreshAirflow } from "../airflow_cache.js";
import { fetchIntervals, fetchStale } from "../api.js";
import { usePolled } from "../asking.js";
import { Nothing, Notice } from "../card.js";
import { Backfill } from "./backfill.js";
import { Charts } from "./charts.js";
import { Checkpoints } from "./checkpoints.js";
import { GateRates } from "./gate_rates.js";
import { IntervalGrid } from "./grid.js";
import { Recoveries } from "./recoveries.js";
import { Savepoints } from "./savepoints.js";
import { Summary } from "./summary.js";

const { createElement: h, useRef, useState } = globalThis.React;
const { Stack } = globalThis.ChakraUI;

// Cards of their own files, each of which is given `dagId` and asks for what it shows.
const CARDS = [Checkpoints, Savepoints, GateRates];

const hurries = (page) => page.intervals.some((row) => row.run?.active);

// Something of the newest intervals began or ended.
const stampOf = (page) =>
  [page.total, ...page.intervals.map((row) => `${row.interval} ${row.run?.run_id} ${row.run?.state}`)].join("|");

// The page of intervals before each of `steps`' last; what was there stays until the next one comes.
function useIntervals(dagId) {
  const [steps, setSteps] = useState([]);
  const before = steps.at(-1) ?? null;
  const ask = (known) => fetchIntervals(dagId, before, known);
  const { found, ...rest } = usePolled(`${dagId} ${before}`, ask, hurries);
  const last = useRef(null);
  if (found !== null) last.current = found;
  const page = last.current?.dag_id === dagId ? last.current : null;
  const older = page?.following ? () => setSteps([...steps, page.following]) : null;
  const newer = steps.length > 0 ? () => setSteps(steps.slice(0, -1)) : null;
  return { before, page, newer, older, turning: found === null, ...rest };
}

const beingPlanned = (stale) => stale.planned_at === null;

// Asked for apart, as it takes a plan of each interval to know.
function useStale(dagId, before) {
  const ask = (known) => fetchStale(dagId, before, known);
  const { found } = usePolled(`${dagId} ${before}`, ask, beingPlanned);
  return found;
}

function PipelinePage({ dagId }) {
  const { before, page, problem, load, hurry, newer, older, turning } = useIntervals(dagId);
  const stale = useStale(dagId, before);
  const [range, setRange] = useState(null);
  if (page === null) return h(Nothing, { problem, title: "The intervals of this pipeline cannot be shown" });
  const started = () => {
    hurry();
    refreshAirflow();
    return load();
  };
  // The backfill's card is below: it is brought into view, with the focus on its button.
  const plan = () => {
    const card = document.querySelector("[data-testid=backfill]");
    card?.scrollIntoView({ block: "start" });
    card?.querySelector("button[type=submit]")?.focus({ preventScroll: true });
  };
  const stamp = newer ? "older" : stampOf(page);
  return h(
    Stack,
    {
      "data-testid": "stagehold-intervals",
      css: { "& > *": { flexShrink: 0 } },
      gap: 4,
      h: "full",
      overflowY: "auto",
      p: 4,
    },
    problem && h(Notice, { palette: "warning", role: "alert" }, `Not up to date: ${problem.message}`),
    h(Summary, { first: newer === null, page, stale }),
    h(IntervalGrid, { newer, older, onPlan: plan, onRange: setRange, page, range, stale, turning }),
    h(Backfill, { dagId, key: dagId, onStarted: started, page, range }),
    CARDS.map((Card) => h(Card, { dagId, key: Card.name })),
    h(Charts, { dagId, stamp }),
    h(Recoveries, { dagId, stamp }),
  );
}

globalThis.AirflowPlugin = PipelinePage;
