// The checkpoints of the pipeline's runs, as Flink shows those of a job.

import { fetchCheckpoint, fetchCheckpoints } from "../api.js";
import { useAnswer, usePolled } from "../asking.js";
import { Card, Columns, Notice } from "../card.js";
import { bytes, clock, duration, plural, runPage } from "../words.js";
import { shortRun } from "./words.js";

const { createElement: h, Fragment, useState } = globalThis.React;
const { Badge, Box, Button, Flex, Link, Spinner, Table, Text } = globalThis.ChakraUI;

const PAGE = 10;
const NAMES = ["Checkpoint", "State", "Triggered", "Took", "Acknowledged", "Size", "Of"];
const STATES = {
  completed: { mark: "✓", palette: "success", text: "completed" },
  replaced: { mark: "–", palette: "gray", text: "replaced" },
  failed: { mark: "✕", palette: "failed", text: "failed" },
  in_progress: { mark: "▸", palette: "running", text: "in progress" },
};
const ANSWERS = { acknowledged: "acknowledged", declined: "declined" };

const spaced = (word) => word.replaceAll("_", " ");

const stateOf = (one) => STATES[one.replaced ? "replaced" : one.state];

const keyOf = (one) => `${one.run_id}#${one.number}`;

const muted = (text, rest) => h(Text, { color: "fg.muted", fontSize: "xs", ...rest }, text);

const triggerText = ({ trigger, savepoint }) => (savepoint ? `savepoint ${savepoint}` : spaced(trigger));

function tookText({ triggered_at, ended_at }) {
  return ended_at ? duration(triggered_at, ended_at) : "";
}

const acknowledgedText = ({ acknowledged, asked }) => (asked ? `${acknowledged}/${asked}` : "–");

function Run({ runId, children }) {
  const page = runPage(runId);
  return page
    ? h(Link, { href: page, overflowWrap: "anywhere", textDecoration: "underline", title: runId }, children)
    : h(Text, { as: "span", title: runId }, children);
}

function Count({ name, count, palette }) {
  return h(
    Box,
    { "data-testid": `count-${name}`, minW: "76px" },
    h(
      Text,
      {
        color: count && palette ? `${palette}.fg` : undefined,
        fontSize: "xl",
        fontWeight: "semibold",
        lineHeight: "1.2",
      },
      count.toLocaleString(),
    ),
    muted(name),
  );
}

function Counts({ counts }) {
  return h(
    Flex,
    { columnGap: 6, px: 4, rowGap: 2, wrap: "wrap" },
    h(Count, { count: counts.triggered, name: "triggered" }),
    h(Count, { count: counts.in_progress, name: "in progress", palette: "running" }),
    h(Count, { count: counts.completed, name: "completed", palette: "success" }),
    h(Count, { count: counts.failed, name: "failed", palette: "failed" }),
    h(Count, { count: counts.restored, name: "restored" }),
  );
}

function Latest({ title, children, when }) {
  return h(
    Box,
    { borderStartWidth: "2px", flex: "1 1 180px", minW: 0, ps: 3 },
    muted(title),
    children
      ? h(Box, { fontSize: "sm", overflowWrap: "anywhere" }, children)
      : h(Text, { color: "fg.muted", fontSize: "sm" }, "none"),
    children && muted(when),
  );
}

function LatestCheckpoint({ title, one }) {
  if (one === null) return h(Latest, { title });
  const took = one.ended_at ? `, took ${tookText(one)}` : "";
  const name = one.savepoint ?? `#${one.number}`;
  return h(
    Latest,
    { title, when: `${clock(one.triggered_at)}${took}` },
    h(Run, { runId: one.run_id }, `${name} of ${one.interval}`),
  );
}

function LatestRestore({ one }) {
  const title = "Latest restore";
  if (one === null) return h(Latest, { title });
  const done = one.fulfilled_at ? "taken over" : "not all of it taken over yet";
  return h(
    Latest,
    { title, when: `${clock(one.requested_at)}, ${done}` },
    h(Box, { as: "span", title: one.manifest }, h(Run, { runId: one.run_id }, shortRun(one.run_id))),
  );
}

function Attempt({ one }) {
  const said = one.answer ? ANSWERS[one.answer] : "has not answered";
  const why = one.reason ? `: ${spaced(one.reason)}` : "";
  const when = one.answered_at ? `, after ${duration(one.asked_at, one.answered_at)}` : "";
  return muted(`${one.share ? `[${one.share}] ` : ""}${said}${why}${when}`, { title: one.attempt_id });
}

// Whose part it was, region by region; asked for when a row is opened, and again while it is in progress.
function Parts({ dagId, one }) {
  const key = `${keyOf(one)} ${one.state} ${one.acknowledged}`;
  const { found, problem } = useAnswer(key, () => fetchCheckpoint(dagId, one.run_id, one.number));
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found) return h(Spinner, { "aria-label": "Loading", size: "sm" });
  if (found.regions.length === 0) return muted("No attempt had a part in it: all that it has was there already.");
  const rows = found.regions.map((region) => [
    region.region,
    `${region.acknowledged}/${region.asked}`,
    region.answered_at ? duration(region.asked_at, region.answered_at) : "",
    h(
      Box,
      null,
      region.attempts.map((attempt) => h(Attempt, { key: attempt.attempt_id, one: attempt })),
      region.asked > region.attempts.length &&
        muted(`and ${plural(region.asked - region.attempts.length, "more attempt")}`),
    ),
  ]);
  return h(Columns, { names: ["Region", "Acknowledged", "Took", "Attempts"], rows });
}

function Opened({ dagId, one }) {
  return h(
    Box,
    { bg: "bg.subtle", borderRadius: "md", "data-testid": "parts", p: 3 },
    h(Text, { fontSize: "sm" }, `${triggerText(one)}, of run `, h(Run, { runId: one.run_id }, shortRun(one.run_id))),
    one.failure &&
      h(
        Text,
        { color: "failed.fg", fontSize: "sm", whiteSpace: "pre-wrap" },
        `${one.failure}${one.fails_run ? " This was one too many, and failed the run." : ""}`,
      ),
    h(Box, { mt: 2 }, h(Parts, { dagId, one })),
  );
}

function Row({ dagId, one, open, onToggle }) {
  const { mark, palette, text } = stateOf(one);
  const cells = [
    h(
      Box,
      {
        "aria-expanded": open,
        as: "button",
        cursor: "pointer",
        onClick: onToggle,
        textAlign: "start",
        type: "button",
      },
      h(Text, { fontWeight: "semibold" }, `${open ? "▾" : "▸"} #${one.number}`),
      muted(triggerText(one), { maxW: "160px", overflowWrap: "anywhere" }),
    ),
    h(Badge, { colorPalette: palette, title: one.failure ?? undefined, variant: "subtle" }, `${mark} ${text}`),
    clock(one.triggered_at),
    h(Text, { whiteSpace: "nowrap" }, tookText(one)),
    acknowledgedText(one),
    h(
      Box,
      { whiteSpace: "nowrap" },
      h(Text, { title: "written by it" }, one.state === "completed" ? bytes(one.bytes_written) : ""),
      one.state === "completed" && muted(`${bytes(one.bytes_full)} in full`),
    ),
    h(Run, { runId: one.run_id }, one.interval),
  ];
  return h(
    Fragment,
    null,
    h(
      Table.Row,
      { "data-state": one.state, "data-testid": "checkpoint" },
      cells.map((cell, column) => h(Table.Cell, { key: NAMES[column], verticalAlign: "top" }, cell)),
    ),
    open && h(Table.Row, null, h(Table.Cell, { colSpan: NAMES.length }, h(Opened, { dagId, one }))),
  );
}

function Rows({ dagId, checkpoints }) {
  const [open, setOpen] = useState(null);
  return h(
    Table.ScrollArea,
    null,
    h(
      Table.Root,
      {
        css: {
          "& th:first-of-type, & td:first-of-type": { paddingInlineStart: 4 },
          "& td": { overflowWrap: "break-word", whiteSpace: "normal" },
        },
        size: "sm",
      },
      h(
        Table.Header,
        null,
        h(
          Table.Row,
          null,
          NAMES.map((name) => h(Table.ColumnHeader, { key: name }, name)),
        ),
      ),
      h(
        Table.Body,
        null,
        checkpoints.map((one) => {
          const key = keyOf(one);
          return h(Row, { dagId, key, one, onToggle: () => setOpen(open === key ? null : key), open: open === key });
        }),
      ),
    ),
  );
}

function Pager({ offset, shown, total, onTurn }) {
  if (total <= PAGE) return null;
  const turn = (text, to, disabled) =>
    h(Button, { disabled, onClick: () => onTurn(to), size: "xs", type: "button", variant: "outline" }, text);
  return h(
    Flex,
    { align: "center", borderTopWidth: "1px", gap: 2, px: 4, py: 2 },
    muted(`${(offset + 1).toLocaleString()}–${(offset + shown).toLocaleString()} of ${total.toLocaleString()}`),
    h(Box, { ml: "auto" }),
    turn("Newer", Math.max(0, offset - PAGE), offset === 0),
    turn("Older", offset + PAGE, offset + shown >= total),
  );
}

export function Checkpoints({ dagId }) {
  const [offset, setOffset] = useState(0);
  const ask = (known) => fetchCheckpoints(dagId, { limit: PAGE, offset }, known);
  const { found, problem } = usePolled(`${dagId} ${offset}`, ask, (page) => page.counts.in_progress > 0);
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found) return null;
  const { counts, checkpoints } = found;
  return h(
    Card,
    { "data-testid": "checkpoints", note: "what runs had reached, for others to go on from", title: "Checkpoints" },
    h(Counts, { counts }),
    counts.triggered + counts.restored > 0 &&
      h(
        Flex,
        { columnGap: 4, px: 4, py: 4, rowGap: 3, wrap: "wrap" },
        h(LatestCheckpoint, { one: found.completed, title: "Latest completed" }),
        h(LatestCheckpoint, { one: found.failed, title: "Latest failed" }),
        h(LatestCheckpoint, { one: found.savepoint, title: "Latest savepoint" }),
        h(LatestRestore, { one: found.restore }),
      ),
    counts.triggered === 0 && h(Box, { px: 4, py: 3 }, muted("None were taken yet.", { fontSize: "sm" })),
    checkpoints.length > 0 && h(Rows, { checkpoints, dagId }),
    h(Pager, { offset, onTurn: setOffset, shown: checkpoints.length, total: counts.triggered }),
  );
}
