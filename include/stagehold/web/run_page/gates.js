// What the gates said: for each stage expectations by partitions, and on a click what was seen.

import { docsUrl, fetchGates, fetchHistory } from "../api.js";
import { useAnswer } from "../asking.js";
import { Card, Notice } from "../card.js";
import { Chart } from "../chart.js";
import { clock, has, OUTCOMES, plural, ranges, WHOLE } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Badge, Box, Code, Flex, Spinner, Text } = globalThis.ChakraUI;

const MOST_SQUARES = 48; // partitions; more are drawn as a strip

const outcomeOf = (one, partition) =>
  one.outcomes.find((group) => has(group.partitions, partition) || has(group.partitions, WHOLE))?.outcome;

function Squares({ stage, one }) {
  const numbers = Array.from({ length: stage.partitions }, (_, partition) => partition);
  return h(
    Flex,
    { gap: "2px" },
    numbers.map((partition) => {
      const outcome = outcomeOf(one, partition);
      const { mark, palette, text } = OUTCOMES[outcome] ?? { mark: "", palette: "gray", text: "without a verdict" };
      return h(
        Box,
        {
          bg: outcome ? `${palette}.${outcome === "passed" ? "subtle" : "solid"}` : "transparent",
          borderRadius: "2px",
          borderStyle: "dashed",
          borderWidth: outcome ? 0 : "1px",
          boxSize: "14px",
          color: outcome === "passed" ? `${palette}.fg` : `${palette}.contrast`,
          "data-outcome": outcome,
          flexShrink: 0,
          fontSize: "10px",
          fontWeight: "bold",
          key: partition,
          lineHeight: "14px",
          textAlign: "center",
          title: `${stage.stage}[${partition}]: ${text}`,
        },
        mark,
      );
    }),
  );
}

function Strip({ stage, one }) {
  const places = (range) => (range[0] === WHOLE ? [0, stage.partitions - 1] : range);
  const parts = one.outcomes.flatMap((group) => group.partitions.map((range) => [...places(range), group.outcome]));
  return h(
    Box,
    { bg: "bg.emphasized", borderRadius: "2px", h: "14px", minW: "240px", overflow: "hidden", position: "relative" },
    parts.map(([first, last, outcome]) =>
      h(Box, {
        bg: `${OUTCOMES[outcome].palette}.solid`,
        "data-outcome": outcome,
        h: "full",
        key: first,
        minW: outcome === "passed" ? undefined : "2px",
        opacity: outcome === "passed" ? 0.35 : 1,
        position: "absolute",
        style: {
          left: `${(100 * first) / stage.partitions}%`,
          width: `${(100 * (last - first + 1)) / stage.partitions}%`,
        },
        title: `${stage.stage}[${ranges([[first, last]])}]: ${OUTCOMES[outcome].text}`,
        zIndex: outcome === "passed" ? 0 : 1,
      }),
    ),
  );
}

const countText = ({ outcome, count }) => `${count.toLocaleString()} ${OUTCOMES[outcome].text}`;

// Not judged yet, or published by an attempt that was killed before it could record what was said.
const unknownIn = (stage, one) =>
  one.outcomes.some((group) => has(group.partitions, WHOLE)) ? 0 : stage.partitions - one.judged;

function Counts({ stage, one }) {
  const unknown = unknownIn(stage, one);
  return h(
    Flex,
    { gap: 1.5, wrap: "wrap" },
    one.outcomes.map(({ outcome, count }) =>
      h(
        Badge,
        { colorPalette: OUTCOMES[outcome].palette, key: outcome, variant: "subtle" },
        `${OUTCOMES[outcome].mark} ${countText({ outcome, count })}`,
      ),
    ),
    unknown > 0 && h(Badge, { variant: "outline" }, `${unknown.toLocaleString()} without a verdict`),
  );
}

function Samples({ stage, group }) {
  const { text } = OUTCOMES[group.outcome];
  const left = group.count - group.samples.length;
  return h(
    Box,
    { "data-testid": "samples", mb: 2 },
    h(Text, { fontWeight: "semibold" }, `${text}: ${stage.stage}[${ranges(group.partitions)}]`),
    group.samples.map((sample) =>
      h(
        Box,
        { key: sample.partition, mt: 1 },
        h(Text, null, `${stage.stage}[${ranges([[sample.partition, sample.partition]])}]: got ${sample.observed}`),
        sample.values.length > 0 &&
          h(
            Code,
            { display: "block", p: 2, size: "sm", variant: "surface", whiteSpace: "pre-wrap" },
            sample.values.join("\n"),
          ),
      ),
    ),
    left > 0 && h(Text, { color: "fg.muted" }, `and ${plural(left, "more partition")}: \`stagehold gates RUN --json\``),
  );
}

function History({ grid, stage, one }) {
  const ask = () => fetchHistory(grid.dag_id, grid.run_id, stage.stage, one.expectation);
  const { found, problem } = useAnswer(`${one.judged_at} ${one.judged}`, ask);
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found) return h(Spinner, { "aria-label": "Loading", size: "sm" });
  if (found.points.length === 0) return null;
  return h(
    Box,
    null,
    h(Text, { color: "fg.muted" }, "Observed in the last intervals: the median of the partitions, and its bounds"),
    h(Chart, { points: found.points }),
  );
}

function Seen({ grid, stage, one }) {
  return h(
    Box,
    { bg: "bg.subtle", "data-testid": "seen", fontSize: "sm", px: 4, py: 3 },
    h(Text, { color: "fg.muted", mb: 2 }, `gate ${one.suite}, judged ${clock(one.judged_at)}`),
    one.outcomes
      .filter((group) => group.samples.length > 0)
      .map((group) => h(Samples, { group, key: group.outcome, stage })),
    one.numeric && h(History, { grid, one, stage }),
  );
}

function Line({ grid, stage, one, chosen, onChoose }) {
  return h(
    Box,
    { borderTopWidth: "1px", "data-testid": "verdicts" },
    h(
      Flex,
      {
        align: "center",
        "aria-expanded": chosen,
        "aria-label": `${one.expectation}: ${one.outcomes.map(countText).join(", ")}`,
        as: "button",
        columnGap: 4,
        cursor: "pointer",
        onClick: onChoose,
        px: 4,
        py: 2,
        rowGap: 1,
        textAlign: "start",
        type: "button",
        w: "full",
        wrap: "wrap",
        _hover: { bg: "bg.subtle" },
      },
      h(
        Box,
        { flex: "1 1 300px", fontSize: "sm", overflowWrap: "anywhere" },
        one.expectation,
        one.severity !== "critical" && h(Badge, { colorPalette: "gray", ml: 2, variant: "outline" }, one.severity),
      ),
      h(Box, { flex: "1 1 260px" }, h(stage.partitions > MOST_SQUARES ? Strip : Squares, { one, stage })),
      h(Box, { flex: "1 1 180px" }, h(Counts, { one, stage })),
    ),
    chosen && h(Seen, { grid, one, stage }),
  );
}

function Stage({ grid, stage }) {
  const [chosen, setChosen] = useState(null);
  const keys = stage.expectations.map((one) => `${one.suite} ${one.expectation}`);
  return h(
    Box,
    { "data-testid": `gate-${stage.stage}`, mb: 2 },
    h(Text, { fontWeight: "semibold", px: 4, py: 2 }, `${stage.stage}, gate ${stage.gate}`),
    keys.length === 0 && h(Text, { color: "fg.muted", fontSize: "sm", px: 4, py: 2 }, "has not judged anything yet"),
    stage.expectations.map((one, index) =>
      h(Line, {
        chosen: chosen === keys[index],
        grid,
        key: keys[index],
        onChoose: () => setChosen(chosen === keys[index] ? null : keys[index]),
        one,
        stage,
      }),
    ),
  );
}

function Docs({ grid, found }) {
  const href = docsUrl(grid.dag_id, grid.run_id);
  const rest = { color: "fg.info", rel: "noopener", target: "_blank", textDecoration: "underline" };
  const link = h(Box, { as: "a", href, ...rest }, "Pages of Great Expectations");
  return h(
    Text,
    { color: "fg.muted", "data-testid": "docs", fontSize: "sm", px: 4, py: 3 },
    found.docs ? link : "`stagehold gates RUN --docs` writes this as pages of Great Expectations, to be read here.",
  );
}

// What they said changes with the run; while it goes on, they are asked again when something new is not met.
function stampOf(grid) {
  const unmet = grid.gate_failures.map((one) => `${one.stage} ${one.standing} ${ranges(one.partitions)}`);
  return [grid.run_id, grid.state, grid.unmet, grid.active ? "" : grid.consumable, ...unmet].join("|");
}

export function Gates({ grid }) {
  const [choice, setChoice] = useState(null);
  const gated = grid.stages.filter((stage) => stage.gate);
  const open = choice ?? grid.unmet > 0;
  const { found, problem } = useAnswer(open ? stampOf(grid) : null, () => fetchGates(grid.dag_id, grid.run_id));
  if (gated.length === 0) return null;
  const note = grid.unmet
    ? `${plural(grid.unmet, "verdict")} of ${plural(gated.length, "gate")} not met`
    : "all that was judged is met";
  const toggle = h(
    Box,
    {
      "aria-expanded": open,
      as: "button",
      color: "fg.muted",
      cursor: "pointer",
      "data-testid": "gates-toggle",
      fontSize: "sm",
      onClick: () => setChoice(!open),
      type: "button",
    },
    open ? "Hide" : "Show",
  );
  return h(
    Card,
    { action: toggle, "data-testid": "gates", note, title: "Gates" },
    open && problem && h(Notice, { palette: "warning", role: "alert" }, problem.message),
    open && !found && !problem && h(Flex, { justify: "center", p: 4 }, h(Spinner, { "aria-label": "Loading" })),
    open && found?.stages.map((stage) => h(Stage, { grid, key: stage.stage, stage })),
    open && found && h(Docs, { grid, found }),
  );
}
