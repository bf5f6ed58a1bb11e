// A stage with very many partitions: a strip of at most a hundred parts. A click, or Enter, opens one as squares.

import { fetchCells } from "../api.js";
import { paint } from "./square.js";
import { LOOKS, partText } from "../words.js";

const { createElement: h, useEffect, useState } = globalThis.React;
const { Box, Flex, Text } = globalThis.ChakraUI;

function Part({ stage, part, open, onOpen }) {
  const text = partText(stage, part);
  return h(
    Box,
    {
      as: "button",
      type: "button",
      "aria-expanded": open,
      "aria-label": text,
      borderWidth: "1px",
      cursor: "pointer",
      "data-state": part.state,
      "data-testid": `part-${stage.name}-${part.first}`,
      flex: "1 1 0",
      fontSize: "10px",
      fontWeight: "bold",
      h: "24px",
      minW: "6px",
      onClick: onOpen,
      outline: open ? "2px solid" : undefined,
      outlineColor: "fg",
      overflow: "hidden",
      p: 0,
      title: text,
      ...paint(part.state),
    },
    stage.strip.length <= 30 ? LOOKS[part.state].mark : null,
  );
}

// The cells of the open part; asked for again when the page has changed.
function useCells(grid, stage, part) {
  const [known, setKnown] = useState({ cells: null, problem: null });
  useEffect(() => {
    let gone = false;
    if (!part) return undefined;
    fetchCells(grid.dag_id, grid.run_id, stage.name, part).then(
      (cells) => !gone && setKnown({ cells, problem: null }),
      (problem) => !gone && setKnown({ cells: null, problem }),
    );
    return () => {
      gone = true;
    };
  }, [grid, stage.name, part?.first, part?.last]);
  const shown = known.cells?.[0]?.partition === part?.first ? known.cells : null;
  return { cells: shown, problem: known.problem };
}

export function Strip({ grid, stage, children }) {
  const [first, setFirst] = useState(null);
  const part = stage.strip.find((one) => one.first === first);
  const { cells, problem } = useCells(grid, stage, part);
  return h(
    Box,
    null,
    h(
      Flex,
      { "data-testid": `strip-${stage.name}`, gap: "1px" },
      stage.strip.map((one) =>
        h(Part, {
          key: one.first,
          stage,
          part: one,
          open: one.first === first,
          onOpen: () => setFirst((now) => (now === one.first ? null : one.first)),
        }),
      ),
    ),
    part &&
      h(
        Box,
        { "data-testid": `open-${stage.name}`, mt: 2 },
        h(Text, { color: "fg.muted", fontSize: "xs", mb: 1 }, partText(stage, part)),
        problem && h(Text, { color: "failed.fg", fontSize: "sm" }, problem.message),
        cells && children(cells),
      ),
  );
}
