// @ts-check
// A stage for an interval as a square that can be pressed, and the marks of the legend.

import { html, Pressable, tooltip } from "../ui.js";
import { amountText, cellText, isBad, isReused, recorded, STATES, VERDICTS, verdictOf } from "./interval_texts.js";

const { Box } = globalThis.ChakraUI;

/**
 * @param {Api.StageStanding} state
 * @param {boolean} reused
 */
function paint(state, reused) {
  const { palette, bad } = STATES[state];
  if (bad) return { bg: `${palette}.solid`, borderColor: `${palette}.solid`, color: `${palette}.contrast` };
  if (state === "missing")
    return { bg: "transparent", borderColor: "border.emphasized", borderStyle: "dashed", color: "fg.muted" };
  if (state === "released") return { bg: "transparent", borderColor: "border", color: "fg.muted" };
  const borderColor = `${palette}.emphasized`;
  return { bg: reused ? "transparent" : `${palette}.subtle`, borderColor, color: `${palette}.fg` };
}

/**
 * @param {Api.StageStanding} state
 * @param {boolean} reused
 */
const markOf = (state, reused) => (reused && state === "consumable" ? "↶" : STATES[state].mark);

export const FOCUSED = { outline: "2px solid", outlineColor: "brand.solid", outlineOffset: "1px" };

/** @param {{ children: Content } & Rest} props */
const Small = ({ children, ...rest }) => html`
  <${Box} alignItems="center" aria-hidden borderRadius="sm" borderWidth="1px" display="inline-flex" flexShrink="0"
    fontSize="11px" fontWeight="bold" justifyContent="center" lineHeight="1" ...${rest}>
    ${children}
  <//>`;

// What the legend explains: a state, what a gate came to, or that something is stale.

/** @param {{ state: Api.StageStanding, reused?: boolean }} props */
export const StateMark = ({ state, reused = false }) => html`
  <${Small} boxSize="18px" ...${paint(state, reused)}>${markOf(state, reused)}<//>`;

/** @param {{ verdict: import("./interval_texts.js").Verdict } & Rest} props */
export function VerdictMark({ verdict, ...rest }) {
  const { mark, palette } = VERDICTS[verdict];
  return html`
    <${Small} bg="bg" borderColor="${palette}.emphasized" borderRadius="full" boxSize="16px" color="${palette}.fg"
      fontSize="10px" ...${rest}>
      ${mark}
    <//>`;
}

/** @param {Rest} props */
export const StaleMark = (props) => html`
  <${Small} borderWidth="0" boxSize="14px" color="warning.fg" ...${props}>↻<//>`;

/**
 * @typedef {{ interval: string, column: Api.StageColumn, cell: Api.StageCell, stale: Api.StaleStage | null }} Shown
 * @param {Shown & { open: boolean, place: Rest, onOpen: () => void }} props of which `place` is for the arrow keys
 */
export function StageSquare({ interval, column, cell, stale, open, place, onOpen }) {
  const verdict = verdictOf(cell);
  const reused = isReused(cell);
  return html`
    <${Box} as="td" borderTopWidth="1px" p="1">
      <${Pressable} ...${place} aria-expanded=${open} ...${tooltip(cellText(interval, column, cell, stale))}
        alignItems="center" borderRadius="sm" borderWidth="1px" data-reused=${reused} data-stale=${stale !== null}
        data-state=${cell.state} data-testid="cell-${interval}-${column.name}" data-verdict=${verdict} display="flex"
        fontSize="13px" fontVariantNumeric="tabular-nums" fontWeight=${isBad(cell) ? "bold" : "medium"} gap="1.5"
        h="28px" minW="64px" onClick=${onOpen} outline=${open ? "2px solid" : undefined} outlineColor="fg"
        outlineOffset="1px" px="2" w="full" _focusVisible=${FOCUSED} ...${paint(cell.state, reused)}>
        <${Box} aria-hidden as="span" textAlign="center" w="12px">${markOf(cell.state, reused)}<//>
        ${recorded(cell) > 0 && html`<${Box} as="span" whiteSpace="nowrap">${amountText(cell)}<//>`}
        ${stale && html`<${StaleMark} ml="auto" />`}
        ${verdict && html`<${VerdictMark} ml=${stale ? 0 : "auto"} verdict=${verdict} />`}
      <//>
    <//>`;
}
