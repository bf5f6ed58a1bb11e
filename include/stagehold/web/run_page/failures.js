// What went wrong: attempts that failed, and what gates refused, which may be waived here.

import { Card, Columns } from "../card.js";
import { Waive } from "./waive.js";
import { ranges, STANDINGS, waiverText } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Badge, Box, Button, Code, Text } = globalThis.ChakraUI;

function Trace({ region, text }) {
  return h(
    Box,
    { as: "details", "data-testid": `trace-${region}`, fontSize: "sm", mt: 1 },
    h(Box, { as: "summary", color: "fg.muted", cursor: "pointer" }, "The whole trace"),
    h(
      Code,
      { display: "block", fontSize: "xs", maxH: "24em", overflow: "auto", p: 3, variant: "surface", whiteSpace: "pre" },
      text,
    ),
  );
}

// What failure enrichers say of it.
function Labels({ attempt }) {
  return Object.entries(attempt.labels).map(([name, label]) =>
    h(
      Badge,
      { "data-testid": `label-${attempt.region}`, key: name, mb: 1, mr: 1, variant: "subtle" },
      `${name}: ${label}`,
    ),
  );
}

export function Failures({ grid, onWaived }) {
  const unmet = grid.gate_failures.filter((one) => one.standing !== "published");
  if (grid.failures.length === 0 && unmet.length === 0) return null;
  return h(
    Card,
    {
      borderColor: "failed.emphasized",
      "data-testid": "failures",
      title: "What went wrong",
      note: grid.active ? "the run is going on" : null,
    },
    grid.failures.map((attempt) =>
      h(
        Box,
        { key: attempt.region, pb: 3, px: 4 },
        h(
          Text,
          { fontWeight: "semibold", mb: 1 },
          `${attempt.region}, ${attempt.epoch ? `attempt epoch ${attempt.epoch}` : "before an attempt began"}`,
        ),
        attempt.cause &&
          h(
            Text,
            { color: "fg.muted", "data-testid": `cause-${attempt.region}`, fontSize: "sm", mb: 1 },
            attempt.cause,
          ),
        h(Labels, { attempt }),
        h(
          Code,
          {
            display: "block",
            "data-testid": `failure-${attempt.region}`,
            fontSize: "sm",
            maxH: "16em",
            overflow: "auto",
            p: 3,
            variant: "surface",
            whiteSpace: "pre-wrap",
          },
          attempt.failure,
        ),
        attempt.trace && h(Trace, { region: attempt.region, text: attempt.trace }),
      ),
    ),
    unmet.length > 0 && h(Unmet, { grid, failures: unmet, onWaived }),
  );
}

function Seen({ failure }) {
  const first = failure.count > 1 ? ` (in the first of ${failure.count.toLocaleString()})` : "";
  return h(
    Box,
    null,
    h(Text, null, failure.expectation),
    h(Text, { color: "fg.muted", fontSize: "xs" }, `gate ${failure.suite}, got ${failure.observed}${first}`),
  );
}

function Standing({ failure }) {
  const { palette, text } = STANDINGS[failure.standing];
  return h(
    Box,
    { "data-testid": `standing-${failure.stage}` },
    h(Badge, { colorPalette: palette, variant: "subtle" }, text),
    failure.waiver && h(Text, { fontSize: "xs", mt: 1 }, waiverText(failure.waiver)),
  );
}

function Unmet({ grid, failures, onWaived }) {
  const [chosen, setChosen] = useState(null); // as it was when it was chosen: no partition joins it unseen
  const rows = failures.map((failure) => [
    `${failure.stage}[${ranges(failure.partitions)}]`,
    h(Seen, { failure }),
    h(Standing, { failure }),
    grid.may_change &&
      failure.standing !== "outdated" &&
      h(
        Button,
        { onClick: () => setChosen(failure), size: "xs", type: "button", variant: "outline" },
        failure.waiver ? "Take back" : "Waive",
      ),
  ]);
  const done = (answer) => {
    setChosen(null);
    return onWaived(answer);
  };
  return h(
    Box,
    { "data-testid": "unmet" },
    h(Columns, { names: ["Partitions", "Does not meet", "Now", ""], rows }),
    chosen &&
      h(Waive, {
        dagId: grid.dag_id,
        runId: grid.run_id,
        key: `${chosen.stage} ${chosen.expectation} ${chosen.standing} ${ranges(chosen.partitions)}`,
        failure: chosen,
        onDone: done,
        onCancel: () => setChosen(null),
      }),
  );
}
