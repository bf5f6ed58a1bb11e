// How the newest intervals stand, and which of them somebody has to look at.

import { clock, lookedText, plural, runPage } from "../words.js";
import { isBad, STATES } from "./words.js";

const { createElement: h } = globalThis.React;
const { Box, Flex, Heading, Link, Text } = globalThis.ChakraUI;

const MOST_NAMED = 5;

const bad = (row) => row.cells.filter(isBad);

function headline(rows) {
  if (rows.length === 0) return "Nothing has run yet";
  const wrong = rows.filter((row) => bad(row).length > 0).length;
  const active = rows.filter((row) => row.run?.active).length;
  const going = active ? `, ${active} under way` : "";
  if (wrong === 0) return `Nothing is wrong with ${plural(rows.length, "interval")}${going}`;
  const verb = wrong === 1 ? "needs" : "need";
  return `${wrong} of ${plural(rows.length, "interval")} ${verb} a look${going}`;
}

function Wrong({ row }) {
  const page = row.run && runPage(row.run.run_id);
  const told = bad(row).map((cell) => `${cell.stage} ${STATES[cell.state].text}`);
  return h(
    Text,
    { fontSize: "sm", overflowWrap: "anywhere" },
    page
      ? h(Link, { fontWeight: "semibold", href: page, textDecoration: "underline" }, row.interval)
      : h(Text, { as: "span", fontWeight: "semibold" }, row.interval),
    `: ${told.join(", ")}`,
  );
}

// How many of those that were planned would come out differently, with why the newest of them would.
function Stale({ stale }) {
  const { looked_at, planned_at, stale: found, unplanned } = stale;
  if (planned_at === null)
    return h(Text, { color: "fg.muted", fontSize: "sm" }, "Which are stale is being worked out.");
  const [one] = found;
  const why = one ? `, the newest ${one.interval}, ${one.stages[0].stage}: ${one.stages[0].reason}` : "";
  const rest = unplanned.length
    ? `. Of ${unplanned.length} it cannot be said, the newest ${unplanned[0].interval}: ${unplanned[0].problem}`
    : "";
  return h(
    Text,
    { color: "fg.muted", fontSize: "sm", overflowWrap: "anywhere", title: `As of ${clock(planned_at)}` },
    `Stale: ${found.length} of ${plural(looked_at.length, "interval")} looked at`,
    `${why}${rest}`,
  );
}

export function Summary({ page, first, stale }) {
  const rows = page.intervals;
  const wrong = rows.filter((row) => bad(row).length > 0);
  const active = rows.some((row) => row.run?.active);
  const palette = wrong.length ? "failed" : active ? "running" : rows.length ? "success" : "gray";
  const shown = rows.length < page.total ? `, ${rows.length}${first ? " newest" : " older"} shown` : "";
  const schedule = page.schedule ? `, ${page.schedule}` : "";
  return h(
    Box,
    {
      bg: "bg",
      borderRadius: "lg",
      borderWidth: "1px",
      css: { "&&": { borderLeftColor: `${palette}.solid`, borderLeftWidth: "6px" } },
      "data-testid": "summary",
      p: 4,
    },
    h(Heading, { "aria-live": "polite", as: "h2", "data-testid": "headline", size: "lg" }, headline(rows)),
    h(
      Text,
      { color: "fg.muted", mt: 1 },
      `${page.pipeline}${schedule}: ${plural(page.total, "interval")} on record${shown}, ${lookedText(page.looked)}`,
    ),
    stale && rows.length > 0 && h(Box, { "data-testid": "stale", mt: 1 }, h(Stale, { stale })),
    wrong.length > 0 &&
      h(
        Flex,
        { direction: "column", gap: 1, mt: 3 },
        wrong.slice(0, MOST_NAMED).map((row) => h(Wrong, { key: row.interval, row })),
        wrong.length > MOST_NAMED &&
          h(Text, { color: "fg.muted", fontSize: "sm" }, `and ${plural(wrong.length - MOST_NAMED, "more interval")}`),
      ),
  );
}
