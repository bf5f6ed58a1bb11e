// Who has the right to work on what now, and until when unless it is renewed.

import { Card, Columns } from "../card.js";
import { clock, plural } from "../words.js";

const { createElement: h } = globalThis.React;
const { Code, Text } = globalThis.ChakraUI;

const MOST = 20;

export function Leases({ leases }) {
  const rows = leases
    .slice(0, MOST)
    .map((one) => [
      h(Code, { overflowWrap: "anywhere", px: 0, size: "sm", variant: "plain" }, one.name),
      h(Text, { fontSize: "sm", overflowWrap: "anywhere" }, one.holder),
      one.epoch,
      clock(one.expires_at),
    ]);
  const left = leases.length - rows.length;
  return h(
    Card,
    { "data-testid": "leases", note: "who works on what now", title: "Leases" },
    rows.length > 0 && h(Columns, { names: ["Of", "Holder", "Epoch", "Ends, unless renewed"], rows }),
    rows.length === 0 && h(Text, { color: "fg.muted", fontSize: "sm", pb: 4, px: 4 }, "Nobody works on anything now."),
    left > 0 && h(Text, { color: "fg.muted", fontSize: "sm", px: 4, py: 3 }, `and ${plural(left, "more lease")}`),
  );
}
