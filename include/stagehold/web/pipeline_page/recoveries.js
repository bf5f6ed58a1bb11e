// Failures after which a run went on: what they were, and what was not computed again.

import { fetchRecoveries } from "../api.js";
import { useAnswer } from "../asking.js";
import { Card, Columns, Notice } from "../card.js";
import { clock, duration, plural, runPage, timeToGo } from "../words.js";

const { createElement: h } = globalThis.React;
const { Badge, Box, Link, Text } = globalThis.ChakraUI;

const NAMES = ["Interval", "Failed", "Why", "Recovered after", "Reused"];

function Interval({ one }) {
  const page = runPage(one.run_id);
  const name = page ? h(Link, { href: page, textDecoration: "underline" }, one.interval) : one.interval;
  return h(Box, { whiteSpace: "nowrap" }, name);
}

const Why = ({ one }) =>
  h(
    Box,
    { minW: "150px" },
    h(Text, { lineClamp: 2, title: one.failure }, one.failure),
    one.cause && h(Text, { color: "fg.muted", fontSize: "xs" }, one.cause),
  );

const What = ({ one }) =>
  h(
    Box,
    null,
    h(Text, { fontWeight: "semibold" }, one.subject),
    h(Text, { color: "fg.muted", fontSize: "xs" }, clock(one.failed_at)),
  );

const Went = ({ one }) =>
  one.recovered_at
    ? h(
        Box,
        { whiteSpace: "nowrap" },
        h(Text, null, duration(one.failed_at, one.recovered_at)),
        h(Text, { color: "fg.muted", fontSize: "xs" }, plural(one.attempts, "attempt")),
      )
    : h(Badge, { colorPalette: "failed", variant: "subtle" }, `not yet, ${plural(one.attempts, "attempt")}`);

const Reused = ({ one }) =>
  h(
    Box,
    null,
    h(Text, null, plural(one.reused, "partition")),
    one.saved_seconds >= 1 &&
      h(Text, { color: "success.fg", fontSize: "xs" }, `${timeToGo(one.saved_seconds)} of work saved`),
  );

export function Recoveries({ dagId, stamp }) {
  const { found, problem } = useAnswer(`${dagId} ${stamp}`, () => fetchRecoveries(dagId));
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found || found.recoveries.length === 0) return null;
  const saved = found.recoveries.reduce((sum, one) => sum + one.saved_seconds, 0);
  const note = "failures that were followed by another try in the same run";
  return h(
    Card,
    {
      "data-testid": "recoveries",
      note: saved >= 1 ? `${note}; ${timeToGo(saved)} of work was not done twice` : note,
      title: "Recoveries",
    },
    h(Columns, {
      names: NAMES,
      rows: found.recoveries.map((one) => [Interval, What, Why, Went, Reused].map((Part) => h(Part, { one }))),
    }),
  );
}
