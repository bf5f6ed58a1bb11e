// @ts-check
// The buttons that end a run: behind the waves that are under way, or at once, which is asked about first.

import { cancel, suspend } from "../api.js";
import { onEscape, useFocusBack } from "../focus.js";
import { textOf } from "../texts.js";
import { html, Notice } from "../ui.js";

const { useState } = globalThis.React;
const { Button, Flex, Text } = globalThis.ChakraUI;

/**
 * @typedef {(problem: Error | null) => void} OnProblem
 * @typedef {{ grid: Api.RunGrid, onProblem: OnProblem, onStopped: () => Promise<void> }} Stopping
 */

// Escape takes it back.
/** @param {{ onYes: () => void, onNo: () => void }} props */
function Question({ onYes, onNo }) {
  useFocusBack();
  return html`
    <${Notice} aria-label=${textOf("stop.cancel")} data-testid="stop-question" onKeyDown=${onEscape(onNo)}
      palette="warning" role="alertdialog" textAlign="start">
      <${Text} mb="2">${textOf("stop.question")}<//>
      <${Flex} gap="2">
        <${Button} autoFocus colorPalette="brand" onClick=${onYes} size="sm" type="button">${textOf("stop.yes")}<//>
        <${Button} onClick=${onNo} size="sm" type="button" variant="outline">${textOf("button.no")}<//>
      <//>
    <//>`;
}

/** @param {Stopping} props */
export function StopButtons({ grid: { ledger_state, place, run_id }, onProblem, onStopped }) {
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const press = async (/** @type {typeof cancel} */ stop) => {
    setAsking(false);
    setBusy(true);
    onProblem(null);
    await stop(place, run_id).then(onStopped, onProblem);
    setBusy(false);
  };
  const suspended = ledger_state === "suspended" || ledger_state === "cancelling";
  return html`
    <${Flex} gap="2" justify="end" wrap="wrap">
      <${Button} data-testid="suspend" disabled=${busy || asking || suspended || ledger_state === null}
        onClick=${() => press(suspend)} size="sm" title=${textOf("stop.suspend_does")} type="button" variant="outline">
        ${textOf("stop.suspend")}
      <//>
      <${Button} data-testid="cancel" disabled=${busy || asking} onClick=${() => setAsking(true)} size="sm"
        title=${textOf("stop.cancel_does")} type="button" variant="outline">
        ${textOf("stop.cancel")}
      <//>
      ${asking && html`<${Question} onNo=${() => setAsking(false)} onYes=${() => press(cancel)} />`}
      ${
        ledger_state === "suspended" &&
        html`<${Text} data-testid="stopping" flexBasis="full" fontSize="sm" textAlign="end">${textOf("stop.ends")}<//>`
      }
    <//>`;
}
