// The Stagehold tab of a run, loaded by Airflow's UI as a React app. Plain modules, no build step: React and Chakra are
// the ones Airflow puts on globalThis, so that the page follows its theme.

import { fetchGrid, resume } from "./api.js";
import { Notice } from "./card.js";
import { Failures } from "./failures.js";
import { Gates } from "./gates.js";
import { Grid } from "./grid.js";
import { Attempts, Preview } from "./preview.js";
import { plural, ranges, restoreText, resumeCounts } from "./words.js";

const { createElement: h, useCallback, useEffect, useState } = globalThis.React;
const { Box, Button, Code, Flex, Heading, Spinner, Stack, Text } = globalThis.ChakraUI;

const BUSY_SECONDS = 1.5;
const IDLE_SECONDS = 10;
// After a resume the scheduler takes a moment to show the run as active again.
const SETTLE_SECONDS = 20;

function useGrid(dagId, runId) {
  const [grid, setGrid] = useState(null);
  const [problem, setProblem] = useState(null);
  const [eagerUntil, setEagerUntil] = useState(0);
  const load = useCallback(
    () =>
      fetchGrid(dagId, runId).then((fresh) => {
        setGrid(fresh);
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
        timer = setTimeout(tick, (grid?.active || Date.now() < eagerUntil ? BUSY_SECONDS : IDLE_SECONDS) * 1000);
    };
    tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, grid?.active, eagerUntil]);
  return { grid, problem, load, hurry };
}

function tone(grid) {
  if (grid.active) return "running";
  if (grid.state === "success") return "success";
  return "failed";
}

function Bar({ grid }) {
  const done = grid.consumable + grid.released;
  const share = grid.partitions ? (100 * done) / grid.partitions : 0;
  return h(
    Box,
    {
      "aria-label": "partitions that are done",
      "aria-valuemax": grid.partitions,
      "aria-valuemin": 0,
      "aria-valuenow": done,
      bg: "bg.emphasized",
      borderRadius: "full",
      h: "6px",
      overflow: "hidden",
      role: "progressbar",
    },
    h(Box, { bg: "success.solid", h: "full", transition: "width 0.4s", w: `${share}%` }),
  );
}

function ResumeButton({ grid, onDone, onProblem }) {
  const [busy, setBusy] = useState(false);
  const { refusal } = grid.resume;
  const press = async () => {
    setBusy(true);
    onProblem(null);
    await resume(grid.dag_id, grid.run_id).then(onDone, onProblem);
    setBusy(false);
  };
  const held = grid.stages.flatMap((stage) => stage.cells).filter((cell) => cell.action === "blocked").length;
  const stays = held ? `; ${held.toLocaleString()} stay blocked by a gate` : "";
  const explanation = refusal ?? `It ${resumeCounts(grid.resume)}${stays}.`;
  return h(
    Stack,
    { align: "end", gap: 1.5, maxW: "360px", ml: "auto" },
    // A run that succeeded and is up to date needs no button.
    (grid.state !== "success" || refusal === null) &&
      h(
        Button,
        {
          "aria-describedby": "stagehold-explanation",
          colorPalette: "brand",
          "data-testid": "resume",
          disabled: refusal !== null || busy,
          loading: busy,
          loadingText: "Resuming",
          onClick: press,
          size: "lg",
          type: "button",
        },
        grid.state === "success" ? "Bring up to date" : "Resume",
      ),
    h(
      Text,
      {
        color: "fg.muted",
        "data-testid": "explanation",
        fontSize: "sm",
        id: "stagehold-explanation",
        textAlign: "end",
      },
      explanation,
    ),
  );
}

function RestoredFrom({ grid }) {
  const restored = grid.stages.flatMap((stage) => stage.cells).filter((cell) => cell.restored).length;
  const text = restoreText(grid.restore, restored);
  return h(Text, { "data-testid": "restored-from", fontSize: "sm", mt: 1, whiteSpace: "pre-wrap" }, text);
}

function Header({ grid, onDone, onProblem }) {
  const palette = tone(grid);
  return h(
    Box,
    {
      bg: "bg",
      borderRadius: "lg",
      borderWidth: "1px",
      css: { "&&": { borderLeftColor: `${palette}.solid`, borderLeftWidth: "6px" } },
      "data-state": grid.state,
      "data-testid": "header",
      p: 4,
    },
    h(
      Flex,
      { gap: 6, justify: "space-between", mb: 4, wrap: "wrap" },
      h(
        Box,
        { flex: "1 1 320px" },
        h(
          Flex,
          { align: "center", gap: 3 },
          grid.active && h(Spinner, { color: "running.solid", size: "sm" }),
          h(Heading, { "aria-live": "polite", as: "h2", "data-testid": "headline", size: "lg" }, grid.headline),
        ),
        h(Text, { color: "fg.muted", mt: 1 }, `${grid.pipeline} for ${grid.interval}`),
        grid.restore && h(RestoredFrom, { grid }),
      ),
      h(ResumeButton, { grid, onDone, onProblem }),
    ),
    h(Bar, { grid }),
  );
}

function Cleared({ answer }) {
  return h(
    Notice,
    { "data-testid": "cleared", palette: "running", role: "status" },
    h(Text, { fontWeight: "semibold" }, `Resumed: cleared ${plural(answer.cleared.length, "task")} in this run.`),
    answer.cleared.map((task) => h(Text, { key: task.name }, h(Code, { mr: 2, size: "sm" }, task.name), task.reason)),
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
    h(Failures, { grid, onWaived: said }),
    h(Grid, { grid, onWaived: said }),
    h(Preview, { grid }),
    h(Gates, { grid }),
    h(Attempts, { grid }),
  );
}

globalThis.AirflowPlugin = RunPage;
