// @ts-check
// Intervals by stages. Every square is a button: its title says what is on record, a click opens the facts below its
// row. Arrow keys go from one to the next. The interval's own button chooses what a backfill is for, with Shift a
// range.

import { clock } from "../formats.js";
import { contentOf, textOf } from "../texts.js";
import { html, Legend, LegendItem, Loading, Muted, Panel, Pressable, RunLink, SmallButton, term } from "../ui.js";
import { breakable, Head, useRoving } from "./grid_parts.js";
import {
  isReused,
  recorded,
  STATES,
  STATES_IN_ORDER,
  staleOf,
  VERDICTS,
  VERDICTS_IN_ORDER,
  verdictOf,
} from "./interval_texts.js";
import { PIN, PinMark, Pinning } from "./pinning.js";
import { StageFacts } from "./stage_facts.js";
import { FOCUSED, StageSquare, StaleMark, StateMark, VerdictMark } from "./stage_square.js";

const { Fragment, useState } = globalThis.React;
const { Box, Button, Flex, Text } = globalThis.ChakraUI;

const FIRST_COLUMN = "176px";
// Keys of a range, oldest first, from the rows at its two ends.
/**
 * @param {Api.IntervalRow[]} rows
 * @param {number} one
 * @param {number} other
 */
function rangeOf(rows, one, other) {
  const [newest, oldest] = [Math.min(one, other), Math.max(one, other)];
  return { first: rows[oldest].interval, last: rows[newest].interval };
}

/** @type {Partial<Record<Api.RunState, string>>} */
const RUN_TONES = {
  failed: "failed",
  failing: "failed",
  finished: "success",
  canceled: "failed",
  cancelling: "failed",
};

// Of a run that was killed the ledger has no end.
/** @param {Api.NewestRun} run */
function toldOf({ active, ended_at, state }) {
  if (active) return { text: state, tone: "running" };
  return ended_at
    ? { text: state, tone: RUN_TONES[state] ?? "warning" }
    : { text: textOf("attempt.lost"), tone: "failed" };
}

/** @param {{ run: Api.NewestRun | null }} props */
function RunState({ run }) {
  if (!run) return html`<${Muted}>${textOf("interval.no_run")}<//>`;
  const { text, tone } = toldOf(run);
  const rest = {
    color: `${tone}.fg`,
    fontSize: "xs",
    title: textOf("interval.begun", { at: clock(run.started_at), run: run.run_id }),
  };
  const otherwise = html`<${Text} ...${rest}>${text}<//>`;
  return html`<${RunLink} ...${rest} otherwise=${otherwise} runId=${run.run_id} tabIndex=${-1}>${text}<//>`;
}

/**
 * @typedef {{ row: Api.IntervalRow, chosen: boolean, place: Rest, onChoose: (event: MouseEvent) => void }} Choosing
 * @param {Choosing} props
 */
const ChooseButton = ({ row: { interval }, chosen, place, onChoose }) => html`
  <${Pressable} ...${place} aria-label=${textOf("interval.choose", { interval })} aria-pressed=${chosen}
    data-testid="interval-${interval}" flex="1 1 auto" fontSize="sm" fontVariantNumeric="tabular-nums"
    fontWeight="semibold" minW="0" onClick=${onChoose} overflow="hidden" textAlign="start" textOverflow="ellipsis"
    title=${textOf("interval.click", { interval })} whiteSpace="nowrap"
    _focusVisible=${FOCUSED}>
    ${interval}
  <//>`;

/** @param {Choosing} props */
const IntervalName = (props) => html`
  <${Box} as="th" bg=${props.chosen ? "brand.subtle" : "bg"} borderEndWidth="1px" borderTopWidth="1px"
    fontWeight="normal" insetInlineStart="0" maxW=${FIRST_COLUMN} minW=${FIRST_COLUMN} position="sticky" px="3"
    scope="row" textAlign="start" zIndex="1">
    <${Flex} align="baseline" gap="2">
      <${ChooseButton} ...${props} />
      ${props.row.pin && html`<${PinMark} pin=${props.row.pin} />`}
      <${RunState} run=${props.row.run} />
    <//>
  <//>`;

/** @param {{ columns: Api.StageColumn[] }} props */
const Heads = ({ columns }) => html`
  <thead>
    <tr>
      <${Head} borderEndWidth="1px" insetInlineStart="0" position="sticky" px="3" zIndex="1">
        ${term("interval", textOf("column.interval"))}
      <//>
      ${columns.map(
        ({ name, gate }) => html`
          <${Head} key=${name} minW="76px" overflowWrap="break-word">
            ${breakable(name)}
            ${gate && html`<${Text} fontWeight="normal">${contentOf("stage.gate", { gate: breakable(gate) })}<//>`}
          <//>`,
      )}
    </tr>
  </thead>`;

/**
 * @typedef {{ page: Api.IntervalPage, columns: Api.StageColumn[], stale: Api.Staleness | null }} OfTable
 * @typedef {{ row: Api.IntervalRow, index: number, chosen: boolean, open: string | null }} OfRow
 * @typedef {{ onOpen: (stage: string) => void, onChoose: (event: MouseEvent) => void }} Pressed
 * @param {OfTable & OfRow & Pressed & { roving: import("./grid_parts.js").Roving }} props of which `open`
 *   is the stage whose facts are shown
 */
function Row({ page, columns, row, stale, index, roving, chosen, open, onOpen, onChoose }) {
  const { interval } = row;
  /** @param {string} name */
  const cellOf = (name) => row.cells.find((cell) => cell.stage === name);
  return html`
    <${Fragment}>
      <tr data-testid="row-${interval}">
        <${IntervalName} chosen=${chosen} onChoose=${onChoose} place=${roving.at(index, 0)} row=${row} />
        ${columns.map(
          (column, at) => html`
            <${StageSquare} cell=${cellOf(column.name)} column=${column} interval=${interval} key=${column.name}
              onOpen=${() => onOpen(column.name)} open=${open === column.name} place=${roving.at(index, at + 1)}
              stale=${staleOf(stale, interval, column.name)} />`,
        )}
      </tr>
      ${
        open &&
        html`
          <tr>
            <${Box} as="td" colSpan=${columns.length + 1} p="0">
              <${StageFacts} cell=${cellOf(open)} column=${page.stages.find((one) => one.name === open)} row=${row}
                stale=${staleOf(stale, interval, open)} />
            <//>
          </tr>`
      }
    <//>`;
}

/** @param {{ page: Api.IntervalPage, stale: Api.Staleness | null }} props */
function Marks({ page, stale }) {
  const cells = page.intervals.flatMap((row) => row.cells).filter((cell) => cell.wanted !== null || recorded(cell));
  const states = STATES_IN_ORDER.filter((state) => cells.some((cell) => cell.state === state));
  const verdicts = VERDICTS_IN_ORDER.filter((one) => cells.some((cell) => verdictOf(cell) === one));
  const reused = cells.some((cell) => cell.state === "consumable" && isReused(cell));
  return html`
    <${Legend} data-testid="legend">
      ${states.map(
        (one) => html`
          <${LegendItem} key=${one} mark=${html`<${StateMark} state=${one} />`} word=${one}>${STATES[one].text}<//>`,
      )}
      ${
        reused &&
        html`
          <${LegendItem} mark=${html`<${StateMark} reused state="consumable" />`} word="reuse">
            ${textOf("legend.reused")}
          <//>`
      }
      ${verdicts.map(
        (one) => html`
          <${LegendItem} key=${one} mark=${html`<${VerdictMark} verdict=${one} />`} word="gate">
            ${textOf("stage.gate", { gate: VERDICTS[one].text })}
          <//>`,
      )}
      ${
        page.intervals.some((row) => row.pin) &&
        html`<${LegendItem} mark=${PIN} word="pin">${textOf("legend.pinned")}<//>`
      }
      ${
        stale &&
        stale.stale.length > 0 &&
        html`<${LegendItem} mark=${html`<${StaleMark} />`} word="stale">${textOf("legend.stale")}<//>`
      }
    <//>`;
}

/**
 * @typedef {{ first: string, last: string }} Range of intervals, oldest first
 * @typedef {{ newer: (() => void) | null, older: (() => void) | null, turning: boolean }} Turns null where no page is
 */

/** @param {Range} range */
const rangeText = ({ first, last }) => (first === last ? first : textOf("range.both", { first, last }));

// Pages, and what is chosen, which stays in sight however long the table is.
/** @param {Turns & { range: Range | null, pinning: Content, onPlan: () => void, onNone: () => void }} props */
function Foot({ newer, older, turning, range, pinning, onPlan, onNone }) {
  if (!newer && !older && !range) return null;
  /** @type {(text: string, onClick: (() => void) | null) => unknown} */
  const turn = (text, onClick) => html`
    <span><${SmallButton} disabled=${!onClick || turning} onClick=${onClick}>${text}<//></span>`;
  const looks = range
    ? { bg: "brand.subtle", bottom: "-16px", position: "sticky" } // that deep is the panel's padding
    : { bg: "bg" };
  return html`
    <${Flex} align="center" borderTopWidth="1px" columnGap="3" px="4" py="2" rowGap="2" wrap="wrap" zIndex="2"
      ...${looks}>
      ${(newer || older) && turn(textOf("turn.newer"), newer)}
      ${(newer || older) && turn(textOf("turn.older"), older)}
      ${turning && html`<${Loading} size="sm" />`}
      ${
        range &&
        html`
          <${Flex} align="center" data-testid="chosen-range" gap="3" ml="auto" wrap="wrap">
            <${Text} fontSize="sm" fontWeight="semibold">${textOf("range.chosen", { range: rangeText(range) })}<//>
            <${Button} colorPalette="brand" onClick=${onPlan} size="xs" type="button">${textOf("backfill.plan")}<//>
            ${pinning}
            <${SmallButton} onClick=${onNone} variant="ghost">${textOf("range.none")}<//>
          <//>`
      }
    <//>`;
}

/**
 * @typedef {{ page: Api.IntervalPage, range: Range | null, stale: Api.Staleness | null }} Shown
 * @typedef {{ onRange: (range: Range | null) => void, onPlan: () => void, onPinned: () => Promise<void> }} Acts
 * @param {Shown & Turns & Acts} props
 */
export function IntervalGrid({ page, range, stale, onRange, onPlan, onPinned, ...turns }) {
  const [open, setOpen] = useState(/** @type {{ interval: string, stage: string } | null} */ (null));
  const [anchor, setAnchor] = useState(/** @type {string | null} */ (null));
  const rows = page.intervals;
  const columns = page.stages.filter((stage) => stage.stored);
  const roving = useRoving(rows.length, columns.length + 1);
  if (rows.length === 0)
    return page.total > 0 ? html`<${Muted} data-testid="no-interval" px="1">${textOf("interval.none")}<//>` : null;
  /** @param {string | null | undefined} key */
  const place = (key) => rows.findIndex((row) => row.interval === key);
  const [first, last] = [place(range?.first), place(range?.last)];
  /** @param {number} index */
  const choose = (index) => (/** @type {MouseEvent} */ event) => {
    const from = place(anchor);
    if (event.shiftKey && from >= 0) return onRange(rangeOf(rows, from, index));
    const alone = range && first === index && last === index;
    setAnchor(alone ? null : rows[index].interval);
    return onRange(alone ? null : rangeOf(rows, index, index));
  };
  /** @param {string} interval */
  const toggle = (interval) => (/** @type {string} */ stage) =>
    setOpen((now) => (now?.interval === interval && now.stage === stage ? null : { interval, stage }));
  const shown = { columns, page, roving, stale };
  const chosen = first >= 0 && last >= 0 ? rows.slice(last, first + 1) : [];
  const pinning = chosen.length > 0 && html`<${Pinning} onPinned=${onPinned} page=${page} rows=${chosen} />`;
  return html`
    <${Panel} data-testid="intervals" overflow="clip">
      <${Marks} page=${page} stale=${stale} />
      <${Box} css=${{ containerType: "inline-size" }} data-testid="scrolling" overflowX="auto">
        <${Box} as="table" aria-label=${textOf("interval.grid")}
          css=${{ borderCollapse: "separate", borderSpacing: 0 }} minW="full" onKeyDown=${roving.onKeyDown}
          ref=${roving.table}>
          <${Heads} columns=${columns} />
          <tbody>
            ${rows.map(
              (row, index) => html`
                <${Row} chosen=${first >= index && last >= 0 && index >= last} index=${index} key=${row.interval}
                  onChoose=${choose(index)} onOpen=${toggle(row.interval)} row=${row}
                  open=${open?.interval === row.interval ? open.stage : null} ...${shown} />`,
            )}
          </tbody>
        <//>
      <//>
      <${Foot} onNone=${() => onRange(null)} onPlan=${onPlan} pinning=${pinning} range=${range} ...${turns} />
    <//>`;
}
