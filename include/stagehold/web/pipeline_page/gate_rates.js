// How often each expectation was met over the last intervals: a small bar for each interval.

import { fetchGateRates } from "../api.js";
import { usePolled } from "../asking.js";
import { Card, Notice } from "../card.js";
import { OUTCOMES, plural } from "../words.js";

const { createElement: h } = globalThis.React;
const { Badge, Box, Flex, Text } = globalThis.ChakraUI;

const ORDER = ["failed", "waived", "warning", "info", "passed"]; // from the top of a bar
const HEIGHT = 32;

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

const tellTimes = ({ interval, counts }) => {
  const told = ORDER.filter((one) => counts[one]).map((one) => `${counts[one].toLocaleString()} ${OUTCOMES[one].text}`);
  return `${interval}: ${told.join(", ")}`;
};

// Rounded so that "all" is said of all alone.
function percent(part, whole) {
  if (part === whole) return "100 %";
  return part === 0 ? "0 %" : `${Math.min(99, Math.max(1, Math.round((100 * part) / whole)))} %`;
}

function Bar({ rate }) {
  if (!rate) return h(Box, { borderBottomWidth: "1px", flex: "1 1 0", h: `${HEIGHT}px`, maxW: "16px" });
  const whole = total(rate.counts);
  return h(
    Flex,
    {
      "aria-label": tellTimes(rate),
      borderRadius: "2px",
      direction: "column",
      flex: "1 1 0",
      h: `${HEIGHT}px`,
      maxW: "16px",
      overflow: "hidden",
      role: "img",
      title: tellTimes(rate),
    },
    ORDER.filter((one) => rate.counts[one]).map((one) =>
      h(Box, {
        bg: one === "passed" ? "success.emphasized" : `${OUTCOMES[one].palette}.solid`,
        "data-outcome": one,
        flexGrow: rate.counts[one] / whole,
        key: one,
        minH: "3px",
        opacity: one === "waived" ? 0.6 : 1,
      }),
    ),
  );
}

function Shares({ rate }) {
  const whole = total(rate.counts);
  const passed = rate.counts.passed ?? 0;
  return h(
    Box,
    { flex: "0 1 190px", minW: "130px" },
    h(Text, { fontWeight: "semibold" }, `${percent(passed, whole)} met`),
    h(
      Flex,
      { gap: 1, wrap: "wrap" },
      ORDER.filter((one) => one !== "passed" && rate.counts[one]).map((one) =>
        h(
          Badge,
          { colorPalette: OUTCOMES[one].palette, key: one, size: "xs", variant: "subtle" },
          `${OUTCOMES[one].mark} ${percent(rate.counts[one], whole)} ${OUTCOMES[one].text}`,
        ),
      ),
    ),
  );
}

function Line({ one, intervals }) {
  const byInterval = Object.fromEntries(one.rates.map((rate) => [rate.interval, rate]));
  const newest = one.rates.at(-1);
  return h(
    Flex,
    {
      align: "center",
      borderTopWidth: "1px",
      columnGap: 4,
      "data-testid": "rates",
      px: 4,
      py: 2,
      rowGap: 1,
      wrap: "wrap",
    },
    h(
      Box,
      { flex: "1 1 210px", fontSize: "sm", overflowWrap: "anywhere" },
      one.expectation,
      one.severity !== "critical" && h(Badge, { colorPalette: "gray", ml: 2, variant: "outline" }, one.severity),
    ),
    h(
      Flex,
      { flex: "1 1 150px", gap: "2px", maxW: "260px" },
      intervals.map((interval) => h(Bar, { key: interval, rate: byInterval[interval] })),
    ),
    h(Shares, { rate: newest }),
  );
}

function Stage({ stage, intervals }) {
  const gate = stage.gate ? `gate ${stage.gate}` : "it has no gate any more";
  return h(
    Box,
    { "data-testid": `rates-${stage.stage}` },
    h(
      Text,
      { fontSize: "sm", fontWeight: "semibold", px: 4, py: 2 },
      stage.stage,
      h(Text, { as: "span", color: "fg.muted", fontWeight: "normal" }, `, ${gate}`),
    ),
    stage.expectations.map((one) => h(Line, { intervals, key: `${one.suite} ${one.expectation}`, one })),
  );
}

export function GateRates({ dagId }) {
  const { found, problem } = usePolled(
    dagId,
    (known) => fetchGateRates(dagId, known),
    () => false,
  );
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found || found.stages.length === 0) return null;
  const judged = found.intervals.filter((interval) =>
    found.stages.some((stage) =>
      stage.expectations.some((one) => one.rates.some((rate) => rate.interval === interval)),
    ),
  );
  return h(
    Card,
    {
      "data-testid": "gate-rates",
      note: `partitions that met each expectation in ${plural(judged.length, "interval")}; shares are of the newest`,
      title: "Gate pass rates",
    },
    found.stages.map((stage) => h(Stage, { intervals: judged, key: stage.stage, stage })),
  );
}
