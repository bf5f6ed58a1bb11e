// The Stagehold tab of a run, loaded by Airflow's UI as a React app. Plain modules, no build step: React and Chakra are
// the ones Airflow puts on globalThis, so that the page follows its theme.

import { refreshAirflow } from "../airflow_cache.js";
import { fetchGrid } from "../api.js";
import { usePolled } from "../asking.js";
import { Attempts } from "./attempts.js";
import { Notice, Nothing } from "../card.js";
import { Failures } from "./failures.js";
import { Gates } from "./gates.js";
import { Grid } from "./grid.js";
import { Header } from "./header.js";
import { RunHistory } from "./history.js";
import { Preview } from "./preview.js";
import { plural, ranges } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Code, Stack, Text } = globalThis.ChakraUI;

const UNPLANNED =
  "This run has very many partitions. Its stages follow in some seconds, when their plan has been made.";

// Something is about to change: the run goes on, or its plan is being worked out.
const awaited = (grid) => !grid.planned && !grid.looked.problem;
const hurries = (grid) => grid.active || awaited(grid);

function Unseen({ problem }) {
  return h(
    Notice,
    { "data-testid": "unseen", palette: "warning", role: "alert" },
    h(Text, { fontWeight: "semibold" }, "The lake cannot be looked into; the figures are those of the ledger."),
    h(Text, null, problem),
  );
}

function Cleared({ answer }) {
  return h(
    Notice,
    { "data-testid": "cleared", palette: "running", role: "status" },
    h(Text, { fontWeight: "semibold" }, `Resumed: cleared ${plural(answer.cleared.length, "task")} in this run.`),
    answer.cleared.map((task) => h(Text, { key: task.name }, h(Code, { size: "sm" }, task.name), " ", task.reason)),
  );
}

function Waived({ answer }) {
  const which = `${answer.stage}[${ranges(answer.partitions)}]`;
  const text = answer.end
    ? `Taken back: ${which} is held to this again. The next run or Resume blocks what was published by that word.`
    : `Waived: ${which}. What no other expectation blocks is published by the next run or Resume.`;
  return h(
    Notice,
    { "data-testid": "waived", palette: answer.end ? "warning" : "success", role: "status" },
    h(Text, { fontWeight: "semibold" }, text),
    h(Text, null, answer.expectation),
  );
}

function RunPage({ dagId, runId }) {
  const ask = (known) => fetchGrid(dagId, runId, known);
  const { found: grid, problem, load, hurry } = usePolled(`${dagId}/${runId}`, ask, hurries);
  const [answer, setAnswer] = useState(null);
  const [refused, setRefused] = useState(null);
  const [waived, setWaived] = useState(null);
  if (grid === null) return h(Nothing, { problem, title: "The stages of this run cannot be shown" });
  const done = (given) => {
    setAnswer(given);
    setWaived(null);
    hurry();
    refreshAirflow();
    return load();
  };
  const said = (given) => {
    setWaived(given);
    return load();
  };
  return h(
    Stack,
    { "data-testid": "stagehold", css: { "& > *": { flexShrink: 0 } }, gap: 4, h: "full", overflowY: "auto", p: 4 },
    problem && h(Notice, { palette: "warning", role: "alert" }, `Not up to date: ${problem.message}`),
    h(Header, { grid, onDone: done, onProblem: setRefused }),
    refused && h(Notice, { "data-testid": "refused", palette: "failed", role: "alert" }, refused.message),
    answer && (grid.active || grid.state !== "success") && h(Cleared, { answer }),
    waived && h(Waived, { answer: waived }),
    grid.looked.problem && h(Unseen, { problem: grid.looked.problem }),
    awaited(grid) && h(Notice, { "data-testid": "unplanned", palette: "running", role: "status" }, UNPLANNED),
    h(Failures, { grid, onWaived: said }),
    grid.planned && h(Grid, { grid, onWaived: said, onAgain: done, onProblem: setRefused }),
    h(Preview, { grid }),
    h(Gates, { grid }),
    h(Attempts, { grid }),
    h(RunHistory, { grid }),
  );
}

globalThis.AirflowPlugin = RunPage;
