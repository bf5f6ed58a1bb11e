// What happened, how much is done, and the button that goes on.

import { resume } from "../api.js";
import { Notice, RunName } from "../card.js";
import { clock, countOf, lookedText, plural, restoreText, resumeCounts, timeToGo } from "../words.js";

const { createElement: h, useEffect, useRef, useState } = globalThis.React;
const { Box, Button, Flex, Heading, Spinner, Stack, Text } = globalThis.ChakraUI;

function tone(grid) {
  if (grid.active) return "running";
  if (grid.state === "success") return grid.whole ? "success" : "warning"; // somebody may have marked it so
  if (grid.ledger_state === "suspended") return "warning"; // somebody wanted it so
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

// More runs than what failed: that is said before anything is cleared.
// Escape takes it back.
function Confirmation({ grid, onYes, onNo }) {
  const { again, run } = grid.resume;
  const verb = again === 1 ? "is" : "are";
  const stages = grid.stages
    .filter((stage) => stage.counts.stale)
    .map((stage) => `${stage.name} (${stage.counts.stale.toLocaleString()})`);
  return h(
    Notice,
    {
      "aria-label": "More runs than what failed",
      "data-testid": "confirmation",
      onKeyDown: (event) => event.key === "Escape" && onNo(),
      palette: "warning",
      role: "alertdialog",
      textAlign: "start",
    },
    h(
      Text,
      { mb: 2 },
      `Of the ${run.toLocaleString()} that run, ${plural(again, "partition")} ${verb} consumable now and ` +
        `run again: ${stages.join(", ")}. Why is said below.`,
    ),
    h(
      Flex,
      { gap: 2 },
      h(
        Button,
        { autoFocus: true, colorPalette: "brand", onClick: onYes, size: "sm", type: "button" },
        "Run all of it",
      ),
      h(Button, { onClick: onNo, size: "sm", type: "button", variant: "outline" }, "Not now"),
    ),
  );
}

function ResumeButton({ grid, onDone, onProblem }) {
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const takenBack = useRef(false);
  const button = useRef(null);
  // Whoever uses the keyboard is back where they were.
  useEffect(() => {
    if (!asking && takenBack.current) button.current?.focus();
  }, [asking]);
  const { again, refusal } = grid.resume;
  const carryOut = async () => {
    takenBack.current = false;
    setAsking(false);
    setBusy(true);
    onProblem(null);
    await resume(grid.dag_id, grid.run_id).then(onDone, onProblem);
    setBusy(false);
  };
  const takeBack = () => {
    takenBack.current = true;
    setAsking(false);
  };
  const press = () => (again > 0 ? setAsking(true) : carryOut());
  const held = grid.stages.reduce((sum, stage) => sum + stage.blocked, 0);
  const stays = held ? `; ${held.toLocaleString()} stay blocked by a gate` : "";
  const explanation = refusal ?? `It ${resumeCounts(grid.resume)}${stays}.${saved(grid)}`;
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
          disabled: refusal !== null || busy || asking,
          loading: busy,
          loadingText: "Resuming",
          onClick: press,
          ref: button,
          size: "lg",
          type: "button",
        },
        grid.state === "success" ? "Bring up to date" : "Resume",
      ),
    asking && refusal === null && h(Confirmation, { grid, onNo: takeBack, onYes: carryOut }),
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

// What is reused took so long when it was computed.
function saved(grid) {
  const seconds = grid.resume.saved_seconds;
  return seconds >= 1 ? ` That spares ${timeToGo(seconds)} of work.` : "";
}

// Which run the data comes from, where not all of it is this one's.
function Origins({ grid }) {
  const { computed, restored, reused, others, saved_seconds } = grid.origins;
  if (restored + reused.length === 0) return null;
  const spared = saved_seconds >= 1 ? `; what it took over spared it ${timeToGo(saved_seconds)} of work` : "";
  return h(
    Text,
    { color: "fg.muted", "data-testid": "origins", fontSize: "sm", overflowWrap: "anywhere" },
    `${computed.toLocaleString()} computed by this run`,
    restored > 0 && `, ${restored.toLocaleString()} restored`,
    reused.map(({ run_id, partitions }) =>
      h("span", { key: run_id }, `, ${partitions.toLocaleString()} reused of run `, h(RunName, { runId: run_id })),
    ),
    others > 0 && `, ${others.toLocaleString()} of other runs`,
    spared,
  );
}

function RestoredFrom({ grid }) {
  const text = restoreText(grid.restore, grid.resume.restored || countOf(grid, "restored"));
  return h(Text, { "data-testid": "restored-from", fontSize: "sm", mt: 1, whiteSpace: "pre-wrap" }, text);
}

export function Header({ grid, onDone, onProblem }) {
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
        h(
          Text,
          { color: "fg.muted", mt: 1 },
          `${grid.pipeline} for ${grid.interval}, `,
          h("span", { "data-testid": "looked" }, lookedText(grid.looked)),
        ),
        h(Origins, { grid }),
        grid.resumed &&
          h(
            Text,
            { color: "fg.muted", "data-testid": "resumed", fontSize: "sm" },
            `Resumed by ${grid.resumed.by}, ${clock(grid.resumed.at)}`,
          ),
        grid.restore && h(RestoredFrom, { grid }),
      ),
      h(ResumeButton, { grid, onDone, onProblem }),
    ),
    h(Bar, { grid }),
  );
}
