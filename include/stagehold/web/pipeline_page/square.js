// A stage for an interval as a square that can be pressed, and the marks of the legend.

import { amountText, cellText, isBad, isReused, recorded, STATES, VERDICTS, verdictOf } from "./words.js";

const { createElement: h } = globalThis.React;
const { Box } = globalThis.ChakraUI;

function paint(state, reused) {
  const { palette, bad } = STATES[state];
  if (bad) return { bg: `${palette}.solid`, borderColor: `${palette}.solid`, color: `${palette}.contrast` };
  if (state === "missing")
    return { bg: "transparent", borderColor: "border.emphasized", borderStyle: "dashed", color: "fg.muted" };
  if (state === "released") return { bg: "transparent", borderColor: "border", color: "fg.muted" };
  const borderColor = `${palette}.emphasized`;
  return { bg: reused ? "transparent" : `${palette}.subtle`, borderColor, color: `${palette}.fg` };
}

const markOf = (state, reused) => (reused && state === "consumable" ? "↶" : STATES[state].mark);

export const FOCUSED = { outline: "2px solid", outlineColor: "brand.solid", outlineOffset: "1px" };

const SMALL = {
  alignItems: "center",
  borderRadius: "sm",
  borderWidth: "1px",
  display: "inline-flex",
  flexShrink: 0,
  fontSize: "11px",
  fontWeight: "bold",
  justifyContent: "center",
  lineHeight: 1,
};

function Verdict({ verdict, ...rest }) {
  const { mark, palette } = VERDICTS[verdict];
  const looks = { bg: "bg", borderColor: `${palette}.emphasized`, borderRadius: "full", color: `${palette}.fg` };
  return h(Box, { ...SMALL, ...looks, "aria-hidden": true, boxSize: "16px", fontSize: "10px", ...rest }, mark);
}

function Stale(rest) {
  return h(Box, { ...SMALL, "aria-hidden": true, borderWidth: 0, boxSize: "14px", color: "warning.fg", ...rest }, "↻");
}

// What the legend explains: a state, what a gate came to, or that something is stale.
export function Mark({ state, reused = false, verdict, stale }) {
  if (stale) return h(Stale);
  if (verdict) return h(Verdict, { verdict });
  return h(Box, { ...SMALL, "aria-hidden": true, boxSize: "18px", ...paint(state, reused) }, markOf(state, reused));
}

export function Cell({ interval, column, cell, stale, open, place, onOpen }) {
  const text = cellText(interval, column, cell, stale);
  const verdict = verdictOf(cell);
  const reused = isReused(cell);
  return h(
    Box,
    { as: "td", borderTopWidth: "1px", p: 1 },
    h(
      Box,
      {
        ...place,
        as: "button",
        "aria-expanded": open,
        "aria-label": text,
        alignItems: "center",
        borderRadius: "sm",
        borderWidth: "1px",
        cursor: "pointer",
        "data-reused": reused,
        "data-stale": stale !== null,
        "data-state": cell.state,
        "data-testid": `cell-${interval}-${column.name}`,
        "data-verdict": verdict,
        display: "flex",
        fontSize: "13px",
        fontVariantNumeric: "tabular-nums",
        fontWeight: isBad(cell) ? "bold" : "medium",
        gap: 1.5,
        h: "28px",
        minW: "64px",
        onClick: onOpen,
        outline: open ? "2px solid" : undefined,
        outlineColor: "fg",
        outlineOffset: "1px",
        px: 2,
        title: text,
        type: "button",
        w: "full",
        _focusVisible: FOCUSED,
        ...paint(cell.state, reused),
      },
      h(Box, { "aria-hidden": true, as: "span", textAlign: "center", w: "12px" }, markOf(cell.state, reused)),
      recorded(cell) > 0 && h(Box, { as: "span", whiteSpace: "nowrap" }, amountText(cell)),
      stale && h(Stale, { ml: "auto" }),
      verdict && h(Verdict, { ml: stale ? 0 : "auto", verdict }),
    ),
  );
}
