// @ts-check
// Pins: intervals that keep their outputs, how they are marked, and the button that pins them or lets them go.

import { pinIntervals } from "../api.js";
import { clock, plural } from "../formats.js";
import { textOf } from "../texts.js";
import { html, Muted, onTyped, SmallButton } from "../ui.js";

const { useState } = globalThis.React;
const { Flex, Input, Text } = globalThis.ChakraUI;

export const PIN = "\u2691";

/** @param {{ pin: Api.IntervalPin }} props */
export function PinMark({ pin: { by, at, reason } }) {
  const text = textOf("pin.by", { at: clock(at), by }) + (reason ? `: ${reason}` : "");
  return html`<${Text} aria-label=${text} as="span" data-testid="pin" role="img" title=${text}>${PIN}<//>`;
}

// Intervals that are all pinned are let go; else those are pinned that are not.
/** @param {{ page: Api.IntervalPage, rows: Api.IntervalRow[], onPinned: () => Promise<void> }} props */
export function Pinning({ page, rows, onPinned }) {
  const [why, setWhy] = useState("");
  const [told, setTold] = useState("");
  const [busy, setBusy] = useState(false);
  const pinned = rows.some((row) => !row.pin);
  const meant = rows.filter((row) => !pinned || !row.pin).map((row) => row.interval);
  const refusal = page.may_change ? undefined : textOf("right.change");
  const say = async () => {
    setBusy(true);
    try {
      const { released } = await pinIntervals(page.dag_id, { intervals: meant, pinned, why });
      setTold(released ? textOf("pin.released", { partitions: plural(released, "partition") }) : "");
      setWhy("");
      await onPinned();
    } catch (problem) {
      setTold(/** @type {Error} */ (problem).message);
    }
    setBusy(false);
  };
  return html`
    <${Flex} align="center" data-testid="pinning" gap="2">
      ${told && html`<${Muted} role="status">${told}<//>`}
      ${
        pinned &&
        !refusal &&
        html`
          <${Input} aria-label=${textOf("pin.label")} maxLength=${1000} onChange=${onTyped(setWhy)}
            placeholder=${textOf("pin.why")}
            size="xs" value=${why} width="140px" />`
      }
      <${SmallButton} disabled=${busy || refusal !== undefined} onClick=${say} title=${refusal}>
        ${textOf(pinned ? "pin.pin" : "pin.unpin", { intervals: plural(meant.length, "interval") })}
      <//>
    <//>`;
}
