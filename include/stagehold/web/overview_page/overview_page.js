// The page of all pipelines in Airflow's menu, loaded by its UI as a React app. Plain modules, no build step, as
// run_page.js.

import { fetchOverview, fetchSizes, fetchStaleOverview } from "../api.js";
import { useAnswer, usePolled } from "../asking.js";
import { Card, Nothing, Notice } from "../card.js";
import { plural } from "../words.js";
import { Leases } from "./leases.js";
import { Pipelines } from "./pipelines.js";
import { Storage, Versions } from "./storage.js";
import { Tiles } from "./tiles.js";
import { STANDINGS } from "./words.js";

const { createElement: h, useEffect, useState } = globalThis.React;
const { Box, Flex, Heading, Stack, Text } = globalThis.ChakraUI;

const SELDOM_SECONDS = 60;
const SOON_SECONDS = 3;
const ORDER = Object.keys(STANDINGS);
const HOW =
  "State and marks are said from ledger and schedule alone. Stale is what would come out differently now, as code, " +
  "sources or suites have changed since; that is worked out apart, and may be some minutes old.";
const NONE =
  "There is no pipeline that you may see. A pipeline is a YAML file in the project's include/pipelines; " +
  "`stagehold init` makes a project.";

// Asked for apart and seldom, as it takes long to work out; soon again while that is `underWay`, and after the first
// time, when the answer may be as old as the last look at this page.
function useSeldom(ask, underWay) {
  const [turn, setTurn] = useState(0);
  const { found } = useAnswer(turn, ask);
  useEffect(() => {
    const seconds = turn === 0 || (found && underWay(found)) ? SOON_SECONDS : SELDOM_SECONDS;
    const timer = setTimeout(() => setTurn(turn + 1), seconds * 1000);
    return () => clearTimeout(timer);
  }, [turn, found]);
  return found;
}

const worstFirst = (rows) => rows.toSorted((one, other) => ORDER.indexOf(one.standing) - ORDER.indexOf(other.standing));

function All({ rows, looked, sizes, stale }) {
  const [chosen, setChosen] = useState(null);
  const shown = worstFirst(chosen ? rows.filter((row) => row.standing === chosen) : rows);
  const note = chosen
    ? `${STANDINGS[chosen].name}: ${shown.length} of ${rows.length}`
    : plural(rows.length, "pipeline");
  return h(
    Stack,
    { gap: 4 },
    h(Tiles, { chosen, onChoose: setChosen, rows }),
    h(
      Card,
      { "data-testid": "pipelines", note, title: "Pipelines" },
      h(Pipelines, { looked, rows: shown, sizes, stale }),
      h(Text, { borderTopWidth: "1px", color: "fg.muted", fontSize: "xs", px: 4, py: 2 }, HOW),
    ),
  );
}

function OverviewPage() {
  const hurries = (all) => all.pipelines.some((row) => row.active > 0);
  const { found, problem } = usePolled("overview", fetchOverview, hurries);
  const sizes = useSeldom(fetchSizes, (one) => !one.counted);
  const stale = useSeldom(fetchStaleOverview, (one) => !one.planned);
  if (found === null) return h(Nothing, { problem, title: "The pipelines cannot be shown" });
  return h(
    Stack,
    {
      "data-testid": "stagehold-overview",
      css: { "& > *": { flexShrink: 0 } },
      gap: 4,
      h: "full",
      overflowY: "auto",
      p: 4,
    },
    problem && h(Notice, { palette: "warning", role: "alert" }, `Not up to date: ${problem.message}`),
    h(Heading, { as: "h2", size: "lg" }, "Stagehold pipelines"),
    found.pipelines.length > 0 && h(All, { looked: found.looked, rows: found.pipelines, sizes, stale }),
    found.pipelines.length === 0 && h(Box, { "data-testid": "none", maxW: "720px" }, h(Text, null, NONE)),
    h(Leases, { leases: found.leases }),
    h(Flex, { align: "start", gap: 4, wrap: "wrap" }, h(Storage, { sizes }), h(Versions, { versions: found.versions })),
  );
}

globalThis.AirflowPlugin = OverviewPage;
