// @ts-check
// The form in which somebody says that data may be read though its gate refuses it, or takes that back.

import { waive } from "../api.js";
import { onEscape, useFocusBack } from "../focus.js";
import { contentOf, meaningOf, textOf } from "../texts.js";
import { Field, html, onTyped, SmallButton } from "../ui.js";
import { ranges } from "./run_texts.js";

const { useState } = globalThis.React;
const { Box, Button, Code, Flex, Input, Text } = globalThis.ChakraUI;

const LONGEST_REASON = 1000; // letters that the server takes

// What is computed anew is judged anew, so that there is nothing to waive of it.
/** @param {{ grid: Api.RunGrid, failure: Api.GateFailure, onClick: () => void }} props */
export function WaiveButton({ grid, failure, onClick }) {
  if (failure.standing === "outdated" || !grid.may_change) return null;
  const mayNot = !failure.waiver && !grid.may_waive;
  const text = failure.waiver ? textOf("waive.back") : textOf("waive.waive");
  return html`
    <${SmallButton} disabled=${mayNot} onClick=${onClick}
      title=${mayNot ? textOf("waive.no_right") : meaningOf("waiver")}>
      ${text}
    <//>`;
}

/** @param {{ failure: Api.GateFailure }} props */
const Question = ({ failure: { stage, partitions, expectation, waiver } }) => html`
  <${Text} fontSize="sm" mb="2">
    ${contentOf(waiver ? "waive.question_back" : "waive.question", {
      which: html`<${Text} as="span" fontWeight="semibold">${stage}[${ranges(partitions)}]<//>`,
    })}
    <${Code} display="block" mt="1" size="sm" whiteSpace="pre-wrap">${expectation}<//>
  <//>`;

/**
 * @typedef {(answer: Api.WaiveAnswer & { end: boolean }) => Promise<void>} OnWaived
 * @typedef {{ grid: Api.RunGrid, failure: Api.GateFailure, onClose: () => void, onWaived: OnWaived }} Waiving
 * @param {Waiving} props of which `failure` is a group of partitions with one expectation that they do not meet; if it
 *   has a waiver, that is ended
 */
export function Waive({ grid, failure, onClose, onWaived }) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  useFocusBack();
  const end = failure.waiver !== null;
  const { stage, expectation, partitions } = failure;
  const wish = { stage, expectation, partitions, reason, end, until: end || !until ? null : until };
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    await waive(grid.place, grid.run_id, wish).then((answer) => {
      onClose();
      return onWaived({ ...answer, end });
    }, setProblem);
    setBusy(false);
  };
  const tomorrow = new Date(Date.now() + 24 * 3600 * 1000).toISOString().slice(0, 10);
  return html`
    <${Box} as="form" bg="bg.subtle" borderTopWidth="1px" data-testid="waive" onKeyDown=${onEscape(onClose)}
      onSubmit=${send} px="4" py="3">
      <${Question} failure=${failure} />
      <${Flex} align="end" gap="3" wrap="wrap">
        <${Field} flex="1 1 320px" label=${textOf("waive.why")} tight>
          <${Input} autoFocus maxLength=${LONGEST_REASON} onChange=${onTyped(setReason)} required size="sm"
            value=${reason} />
        <//>
        ${
          !end &&
          html`
            <${Field} flex="0 0 200px" label=${textOf("waive.until")} tight>
              <${Input} min=${tomorrow} onChange=${onTyped(setUntil)} size="sm" type="date" value=${until} />
            <//>`
        }
        <${Button} colorPalette="brand" disabled=${busy || !reason.trim()} loading=${busy} size="sm" type="submit">
          ${end ? textOf("waive.back") : textOf("waive.waive")}
        <//>
        <${Button} onClick=${onClose} size="sm" type="button" variant="ghost">${textOf("button.cancel")}<//>
      <//>
      ${problem && html`<${Text} color="failed.fg" fontSize="sm" mt="2" role="alert">${problem.message}<//>`}
    <//>`;
}
