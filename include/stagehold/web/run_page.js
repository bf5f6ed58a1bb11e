// The Stagehold tab of a run, loaded by Airflow's UI as a React app. Plain modules, no build step: React and Chakra are
// the ones Airflow puts on globalThis, so that the page follows its theme.

import { refreshAirflow } from "./airflow_cache.js";
import { fetchGrid } from "./api.js";
import { Attempts } from "./attempts.js";
import { Notice } from "./card.js";
import { Failures } from "./failures.js";
import { Gates } from "./gates.js";
import { Grid } from "./grid.js";
import { Header } from "./header.js";
import { RunHistory } from "./history.js";
import { Preview } from "./preview.js";
import { plural, ranges } from "./words.js";

const { createElement: h, useCallback, useEffect, useRef, useState } = globalThis.React;
const { Box, Code, Flex, Heading, Spinner, Stack, Text } = globalThis.ChakraUI;

const BUSY_SECONDS = 1.5;
const IDLE_SECONDS = 10;
// After a resume the scheduler takes a moment to show the run as active again.
const SETTLE_SECONDS = 20;
const UNPLANNED =
  "This run has very many partitions. Its stages follow in some seconds, when their plan has been made.";

// Something is about to change: the run goes on, or its plan is being worked out.
const hurries = (grid) => grid !== null && (grid.active || !grid.planned);

function useGrid(dagId, runId) {
  const [grid, setGrid] = useState(null);
  const [problem, setProblem] = useState(null);
  const [eagerUntil, setEagerUntil] = useState(0);
  const tag = useRef(null);
  const load = useCallback(
    () =>
      fetchGrid(dagId, runId, tag.current).then((fresh) => {
        if (fresh) {
          tag.current = fresh.tag;
          setGrid(fresh.grid);
        }
        setProblem(null);
      }, setProblem),
    [dagId, runId],
  );
  const hurry = useCallback(() => setEagerUntil(Date.now() + SETTLE_SECONDS * 1000), []);
  useEffect(() => {
    let timer;
    let stopped = false;
    const tick = async () => {
      if (!document.hidden) await load();
      if (!stopped)
        timer = setTimeout(tick, (hurries(grid) || Date.now() < eagerUntil ? BUSY_SECONDS : IDLE_SECONDS) * 1000);
    };
    tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, hurries(grid), eagerUntil]);
  return { grid, problem, load, hurry };
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

function Nothing({ problem }) {
  if (problem === null) return h(Flex, { justify: "center", p: 10 }, h(Spinner, { "aria-label": "Loading" }));
  const title = problem.status === 404 ? "Nothing of Stagehold here" : "The stages of this run cannot be shown";
  return h(
    Box,
    { "data-testid": "nothing", maxW: "720px", p: 8 },
    h(Heading, { as: "h2", mb: 2, size: "md" }, title),
    h(Text, { color: "fg.muted", whiteSpace: "pre-wrap" }, problem.message),
  );
}

function RunPage({ dagId, runId }) {
  const { grid, problem, load, hurry } = useGrid(dagId, runId);
  const [answer, setAnswer] = useState(null);
  const [refused, setRefused] = useState(null);
  const [waived, setWaived] = useState(null);
  if (grid === null) return h(Nothing, { problem });
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
    !grid.planned && h(Notice, { "data-testid": "unplanned", palette: "running", role: "status" }, UNPLANNED),
    h(Failures, { grid, onWaived: said }),
    grid.planned && h(Grid, { grid, onWaived: said }),
    h(Preview, { grid }),
    h(Gates, { grid }),
    h(Attempts, { grid }),
    h(RunHistory, { grid }),
  );
}

globalThis.AirflowPlugin = RunPage;
