// Intervals by stages. Every square is a button: its title says what is on record, a click opens the facts below its
// row. Arrow keys go from one to the next. The interval's own button chooses what a backfill is for, with Shift a
// range.

import { clock, runPage } from "../words.js";
import { Facts } from "./facts.js";
import { Cell, FOCUSED, Mark } from "./square.js";
import { isReused, recorded, STATES, staleOf, VERDICTS, verdictOf } from "./words.js";

const { createElement: h, useRef, useState } = globalThis.React;
const { Box, Button, Flex, Link, Spinner, Text } = globalThis.ChakraUI;

const FIRST_COLUMN = "176px";
const STEPS = { ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0] };

const within = (number, count) => Math.min(Math.max(number, 0), count - 1);

// Where a key leads from a place in so many rows and columns; null if it is none of ours.
function placeAfter(event, [row, column], [rows, columns]) {
  if (event.key === "Home") return [event.ctrlKey ? 0 : row, 0];
  if (event.key === "End") return [event.ctrlKey ? rows - 1 : row, columns - 1];
  const step = STEPS[event.key];
  return step ? [within(row + step[0], rows), within(column + step[1], columns)] : null;
}

// One button at a time can be reached by Tab; it is the one that had the focus last.
function useRoving(rows, columns) {
  const [place, setPlace] = useState([0, 0]);
  const table = useRef(null);
  const shown = [within(place[0], rows), within(place[1], columns)];
  const go = (next) => {
    setPlace(next);
    table.current?.querySelector(`[data-place="${next.join(",")}"]`)?.focus();
  };
  return {
    at: (row, column) => ({
      "data-place": `${row},${column}`,
      onFocus: () => setPlace([row, column]),
      tabIndex: row === shown[0] && column === shown[1] ? 0 : -1,
    }),
    onKeyDown: (event) => {
      const from = event.target.closest?.("[data-place]")?.dataset.place;
      const next = from && placeAfter(event, from.split(",").map(Number), [rows, columns]);
      if (!next) return;
      event.preventDefault();
      go(next);
    },
    table,
  };
}

// Keys of a range, oldest first, from the rows at its two ends.
function rangeOf(rows, one, other) {
  const [newest, oldest] = [Math.min(one, other), Math.max(one, other)];
  return { first: rows[oldest].interval, last: rows[newest].interval };
}

const RUN_TONES = {
  failed: "failed",
  failing: "failed",
  finished: "success",
  canceled: "failed",
  cancelling: "failed",
};

function RunState({ run }) {
  if (!run) return h(Text, { color: "fg.muted", fontSize: "xs" }, "no run");
  // Of a run that was killed the ledger has no end.
  const [text, tone] = run.active
    ? [run.state, "running"]
    : run.ended_at
      ? [run.state, RUN_TONES[run.state] ?? "warning"]
      : ["lost", "failed"];
  const page = runPage(run.run_id);
  const rest = { color: `${tone}.fg`, fontSize: "xs", title: `${run.run_id}, begun ${clock(run.started_at)}` };
  return page ? h(Link, { ...rest, href: page, tabIndex: -1, textDecoration: "underline" }, text) : h(Text, rest, text);
}

function ChooseButton({ row, chosen, place, onChoose }) {
  return h(
    Box,
    {
      ...place,
      as: "button",
      "aria-label": `${row.interval}: choose for a backfill`,
      "aria-pressed": chosen,
      cursor: "pointer",
      "data-testid": `interval-${row.interval}`,
      flex: "1 1 auto",
      fontSize: "sm",
      fontVariantNumeric: "tabular-nums",
      fontWeight: "semibold",
      minW: 0,
      onClick: onChoose,
      overflow: "hidden",
      textAlign: "start",
      textOverflow: "ellipsis",
      title: `${row.interval}: click to choose it for a backfill, with Shift a range`,
      type: "button",
      whiteSpace: "nowrap",
      _focusVisible: FOCUSED,
    },
    row.interval,
  );
}

function IntervalName({ row, chosen, ...rest }) {
  return h(
    Box,
    {
      as: "th",
      bg: chosen ? "brand.subtle" : "bg",
      borderEndWidth: "1px",
      borderTopWidth: "1px",
      fontWeight: "normal",
      insetInlineStart: 0,
      maxW: FIRST_COLUMN,
      minW: FIRST_COLUMN,
      position: "sticky",
      px: 3,
      scope: "row",
      textAlign: "start",
      zIndex: 1,
    },
    h(Flex, { align: "baseline", gap: 2 }, h(ChooseButton, { ...rest, chosen, row }), h(RunState, { run: row.run })),
  );
}

// Long names break where their words do.
const breakable = (name) => name.split(/(?<=[_./-])/).flatMap((part) => [part, h("wbr", { key: part })]);

function Heads({ columns }) {
  const head = (key, rest, ...children) =>
    h(
      Box,
      {
        as: "th",
        bg: "bg",
        color: "fg.muted",
        fontSize: "xs",
        fontWeight: "semibold",
        key,
        px: 2,
        py: 2,
        scope: "col",
        textAlign: "start",
        verticalAlign: "bottom",
        ...rest,
      },
      ...children,
    );
  return h(
    "thead",
    null,
    h(
      "tr",
      null,
      head(
        "interval",
        { borderEndWidth: "1px", insetInlineStart: 0, position: "sticky", px: 3, zIndex: 1 },
        "Interval",
      ),
      columns.map((one) =>
        head(
          one.name,
          { minW: "76px", overflowWrap: "break-word" },
          breakable(one.name),
          one.gate && h(Text, { fontWeight: "normal" }, "gate ", breakable(one.gate)),
        ),
      ),
    ),
  );
}

function Row({ page, columns, row, stale, index, roving, chosen, open, onOpen, onChoose }) {
  const cellOf = (column) => row.cells.find((cell) => cell.stage === column.name);
  return [
    h(
      "tr",
      { "data-testid": `row-${row.interval}`, key: row.interval },
      h(IntervalName, { chosen, onChoose, place: roving.at(index, 0), row }),
      columns.map((column, at) =>
        h(Cell, {
          cell: cellOf(column),
          column,
          interval: row.interval,
          key: column.name,
          onOpen: () => onOpen(column.name),
          open: open === column.name,
          place: roving.at(index, at + 1),
          stale: staleOf(stale, row.interval, column.name),
        }),
      ),
    ),
    open &&
      h(
        "tr",
        { key: `${row.interval} facts` },
        h(
          Box,
          { as: "td", colSpan: columns.length + 1, p: 0 },
          h(Facts, {
            cell: cellOf({ name: open }),
            column: page.stages.find((one) => one.name === open),
            row,
            stale: staleOf(stale, row.interval, open),
          }),
        ),
      ),
  ];
}

function Legend({ page, stale }) {
  const cells = page.intervals.flatMap((row) => row.cells).filter((cell) => cell.wanted !== null || recorded(cell));
  const states = Object.keys(STATES).filter((state) => cells.some((cell) => cell.state === state));
  const verdicts = Object.keys(VERDICTS).filter((one) => cells.some((cell) => verdictOf(cell) === one));
  const item = (key, mark, text) => h(Flex, { align: "center", gap: 2, key }, mark, h(Text, { fontSize: "sm" }, text));
  return h(
    Flex,
    { columnGap: 5, "data-testid": "legend", px: 4, py: 3, rowGap: 2, wrap: "wrap" },
    states.map((state) => item(state, h(Mark, { state }), STATES[state].text)),
    cells.some((cell) => cell.state === "consumable" && isReused(cell)) &&
      item("reused", h(Mark, { reused: true, state: "consumable" }), "consumable, all of earlier runs"),
    verdicts.map((one) => item(`gate ${one}`, h(Mark, { verdict: one }), `gate ${VERDICTS[one].text}`)),
    stale?.stale.length > 0 && item("stale", h(Mark, { stale: true }), "stale: would come out differently now"),
  );
}

const rangeText = ({ first, last }) => (first === last ? first : `${first} to ${last}`);

// Pages, and what is chosen, which stays in sight however long the table is.
function Foot({ newer, older, turning, range, onPlan, onNone }) {
  if (!newer && !older && !range) return null;
  const button = (text, onClick, rest) => h(Button, { onClick, size: "xs", type: "button", ...rest }, text);
  const turn = (text, onClick) => button(text, onClick, { disabled: !onClick || turning, variant: "outline" });
  return h(
    Flex,
    {
      align: "center",
      bg: range ? "brand.subtle" : "bg",
      borderTopWidth: "1px",
      bottom: range ? "-16px" : undefined, // the panel's padding
      columnGap: 3,
      position: range ? "sticky" : undefined,
      px: 4,
      py: 2,
      rowGap: 2,
      wrap: "wrap",
      zIndex: 2,
    },
    (newer || older) && [turn("Newer", newer), turn("Older", older)].map((one, key) => h("span", { key }, one)),
    turning && h(Spinner, { "aria-label": "Loading", size: "sm" }),
    range &&
      h(
        Flex,
        { align: "center", "data-testid": "chosen-range", gap: 3, ml: "auto", wrap: "wrap" },
        h(Text, { fontSize: "sm", fontWeight: "semibold" }, `${rangeText(range)} chosen`),
        button("Plan a backfill", onPlan, { colorPalette: "brand" }),
        button("Choose none", onNone, { variant: "ghost" }),
      ),
  );
}

export function IntervalGrid({ page, range, stale, newer, older, turning, onRange, onPlan }) {
  const [open, setOpen] = useState(null);
  const [anchor, setAnchor] = useState(null);
  const rows = page.intervals;
  const columns = page.stages.filter((stage) => stage.stored);
  const roving = useRoving(rows.length, columns.length + 1);
  if (rows.length === 0) return null;
  const place = (key) => rows.findIndex((row) => row.interval === key);
  const [first, last] = range ? [place(range.first), place(range.last)] : [-1, -1];
  const choose = (index) => (event) => {
    const from = place(anchor);
    if (event.shiftKey && from >= 0) return onRange(rangeOf(rows, from, index));
    const alone = range && first === index && last === index;
    setAnchor(alone ? null : rows[index].interval);
    return onRange(alone ? null : rangeOf(rows, index, index));
  };
  const toggle = (interval) => (stage) =>
    setOpen((now) => (now?.interval === interval && now.stage === stage ? null : { interval, stage }));
  return h(
    Box,
    { bg: "bg", borderRadius: "lg", borderWidth: "1px", "data-testid": "intervals", overflow: "clip" },
    h(Legend, { page, stale }),
    h(
      Box,
      { css: { containerType: "inline-size" }, "data-testid": "scrolling", overflowX: "auto" },
      h(
        Box,
        {
          as: "table",
          "aria-label": "Intervals by stages; arrow keys go from one to the next",
          css: { borderCollapse: "separate", borderSpacing: 0 },
          minW: "full",
          onKeyDown: roving.onKeyDown,
          ref: roving.table,
        },
        h(Heads, { columns }),
        h(
          "tbody",
          null,
          rows.map((row, index) =>
            Row({
              chosen: first >= index && last >= 0 && index >= last,
              columns,
              index,
              onChoose: choose(index),
              onOpen: toggle(row.interval),
              open: open?.interval === row.interval ? open.stage : null,
              page,
              roving,
              row,
              stale,
            }),
          ),
        ),
      ),
    ),
    h(Foot, { newer, older, onNone: () => onRange(null), onPlan, range, turning }),
  );
}
