// How many pipelines stand how; a press shows only those.

import { STANDINGS } from "./words.js";

const { createElement: h } = globalThis.React;
const { Box, Grid, Text } = globalThis.ChakraUI;

function Tile({ name, mark, palette, count, chosen, onChoose }) {
  const quiet = count === 0;
  return h(
    Box,
    {
      "aria-pressed": chosen,
      as: "button",
      bg: chosen ? "bg.emphasized" : "bg",
      borderRadius: "lg",
      borderWidth: "1px",
      css: { "&&": { borderTopColor: quiet ? undefined : `${palette}.solid`, borderTopWidth: "3px" } },
      cursor: quiet ? "default" : "pointer",
      "data-testid": `tile-${name}`,
      disabled: quiet,
      onClick: onChoose,
      opacity: quiet ? 0.55 : 1,
      px: 2.5,
      py: 3,
      textAlign: "start",
      type: "button",
      _hover: quiet ? undefined : { bg: "bg.subtle" },
    },
    h(Text, { fontSize: "2xl", fontWeight: "semibold", lineHeight: "1.1" }, count.toLocaleString()),
    h(Text, { color: quiet ? "fg.muted" : `${palette}.fg`, fontSize: "sm", whiteSpace: "nowrap" }, `${mark} ${name}`),
  );
}

export function Tiles({ rows, chosen, onChoose }) {
  const counts = Object.keys(STANDINGS).map((one) => [one, rows.filter((row) => row.standing === one).length]);
  return h(
    Grid,
    { gap: 2, templateColumns: "repeat(auto-fit, minmax(104px, 1fr))" },
    counts
      .filter(([one, count]) => count > 0 || one !== "hidden")
      .map(([one, count]) =>
        h(Tile, {
          ...STANDINGS[one],
          chosen: chosen === one,
          count,
          key: one,
          onChoose: () => onChoose(chosen === one ? null : one),
        }),
      ),
  );
}
