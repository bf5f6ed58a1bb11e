// Computing a stage of the run once more, even if nothing changed: asked twice, as it may take long.

import { again } from "../api.js";
import { plural } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Button, Flex, Text } = globalThis.ChakraUI;

export function Again({ grid, stage, onDone, onProblem }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const carryOut = async () => {
    setBusy(true);
    onProblem(null);
    await again(grid.dag_id, grid.run_id, stage.name).then(onDone, onProblem);
    setAsking(false);
    setBusy(false);
  };
  const which = `${plural(stage.partitions, "partition")} of ${stage.name}`;
  const about = `${which} will be computed once more. What reads them runs if they come out different.`;
  const ask = { onClick: () => setAsking(true), size: "xs", type: "button", variant: "outline" };
  return h(
    Flex,
    { align: "center", borderTopWidth: "1px", "data-testid": "again", gap: 3, px: 4, py: 2, wrap: "wrap" },
    !asking && h(Button, ask, `Run ${stage.name} again, even if nothing changed`),
    asking && h(Text, { flex: "1 1 320px" }, about),
    asking &&
      h(
        Button,
        { autoFocus: true, colorPalette: "brand", loading: busy, onClick: carryOut, size: "xs", type: "button" },
        "Run it again",
      ),
    asking && h(Button, { onClick: () => setAsking(false), size: "xs", type: "button", variant: "outline" }, "Not now"),
  );
}
