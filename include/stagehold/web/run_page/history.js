// What happened to the run, from the ledger or, when that has forgotten it, from the archive in the lake.

import { useAnswer } from "../asking.js";
import { fetchRunHistory } from "../api.js";
import { Columns, FoldedCard, Notice } from "../card.js";
import { clock, plural } from "../words.js";

const { createElement: h } = globalThis.React;
const { Box, Spinner, Text } = globalThis.ChakraUI;

// It may have more to tell when the run or one of its attempts has changed.
const stampOf = (grid) => `${grid.state} ${grid.attempts.map((one) => one.state)} ${grid.resumed?.at}`;

function Lines({ grid }) {
  const { found, problem } = useAnswer(stampOf(grid), () => fetchRunHistory(grid.dag_id, grid.run_id));
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found) return h(Spinner, { "aria-label": "Loading", m: 4, size: "sm" });
  const notes = [
    found.archived && "Some or all of this is read from the archive in the lake: the ledger has forgotten it.",
    found.earlier > 0 && `${plural(found.earlier, "earlier line")}: \`stagehold status RUN\`.`,
  ];
  return h(
    Box,
    null,
    notes.filter(Boolean).map((note) => h(Text, { color: "fg.muted", fontSize: "sm", key: note, px: 4, py: 1 }, note)),
    h(Columns, {
      names: ["Time", "Of", "What"],
      rows: found.lines.map((line) => [clock(line.at), line.of, h(Text, { whiteSpace: "pre-wrap" }, line.text)]),
    }),
  );
}

export function RunHistory({ grid }) {
  return h(
    FoldedCard,
    { "data-testid": "history", note: "what happened, step by step", title: "History" },
    h(Lines, { grid }),
  );
}
