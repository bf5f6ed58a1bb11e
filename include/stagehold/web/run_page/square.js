// A coloured square with a mark, and the paint of it.

import { LOOKS } from "../words.js";

const { createElement: h } = globalThis.React;
const { Box } = globalThis.ChakraUI;

const PULSE = {
  "@keyframes stageholdPulse": { "50%": { opacity: 0.45 } },
  animation: "stageholdPulse 1.4s ease-in-out infinite",
};

export function paint(look) {
  const { palette, solid } = LOOKS[look];
  if (solid) return { bg: `${palette}.solid`, color: `${palette}.contrast`, borderColor: `${palette}.solid` };
  const dashed = look === "waiting" || look === "released";
  return {
    bg: dashed ? "transparent" : `${palette}.subtle`,
    color: `${palette}.fg`,
    borderColor: `${palette}.emphasized`,
    borderStyle: dashed ? "dashed" : "solid",
  };
}

export function Square({ look, ...rest }) {
  return h(
    Box,
    {
      alignItems: "center",
      borderRadius: "sm",
      borderWidth: "1px",
      boxSize: "24px",
      display: "inline-flex",
      flexShrink: 0,
      fontSize: "13px",
      fontWeight: "bold",
      justifyContent: "center",
      lineHeight: 1,
      css: look === "running" ? PULSE : undefined,
      ...paint(look),
      ...rest,
    },
    LOOKS[look].mark,
  );
}
