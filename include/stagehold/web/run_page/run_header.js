// @ts-check
// What happened, how much is done, and the button that goes on.

import { resume } from "../api.js";
import { onEscape, useFocusBack } from "../focus.js";
import { clock, lookedText, plural, timeToGo } from "../formats.js";
import { number } from "../numbers.js";
import { contentOf, textOf } from "../texts.js";
import { Headline, html, Muted, Notice, RunLink } from "../ui.js";
import { countOf, restoreText, resumeCounts } from "./run_texts.js";
import { StopButtons } from "./stop_buttons.js";

const { useState } = globalThis.React;
const { Box, Button, Flex, Heading, Spinner, Stack, Text } = globalThis.ChakraUI;

/** @param {Api.RunGrid} grid */
function tone(grid) {
  if (grid.active) return "running";
  if (grid.state === "success") return grid.whole ? "success" : "warning"; // somebody may have marked it so
  if (grid.ledger_state === "suspended") return "warning"; // somebody wanted it so
  return "failed";
}

/** @param {{ grid: Api.RunGrid }} props */
function Bar({ grid }) {
  const done = grid.consumable + grid.released;
  const share = grid.partitions ? (100 * done) / grid.partitions : 0;
  return html`
    <${Box} aria-label=${textOf("header.done")} aria-valuemax=${grid.partitions} aria-valuemin=${0}
      aria-valuenow=${done} bg="bg.emphasized" borderRadius="full" h="6px" overflow="hidden" role="progressbar">
      <${Box} bg="success.solid" h="full" transition="width 0.4s" w="${share}%" />
    <//>`;
}

// More runs than what failed: that is said before anything is cleared.
// Escape takes it back.
/** @param {{ grid: Api.RunGrid, onYes: () => void, onNo: () => void }} props */
function Confirmation({ grid, onYes, onNo }) {
  const { again, run } = grid.resume;
  const stages = grid.stages
    .filter((stage) => stage.counts.stale)
    .map((stage) => `${stage.name} (${number(stage.counts.stale ?? 0)})`);
  useFocusBack();
  const facts = { again: plural(again, "partition"), count: again, run, stages: stages.join(", ") };
  return html`
    <${Notice} aria-label=${textOf("confirm.more")} data-testid="confirmation" onKeyDown=${onEscape(onNo)}
      palette="warning" role="alertdialog" textAlign="start">
      <${Text} mb="2">
        ${textOf("confirm.question", facts)} ${textOf("confirm.why")}
      <//>
      <${Flex} gap="2">
        <${Button} autoFocus colorPalette="brand" onClick=${onYes} size="sm" type="button">${textOf("confirm.yes")}<//>
        <${Button} onClick=${onNo} size="sm" type="button" variant="outline">${textOf("button.no")}<//>
      <//>
    <//>`;
}

/**
 * @typedef {(problem: Error | null) => void} OnProblem
 * @typedef {(answer: Api.ResumeAnswer) => Promise<void>} OnCleared
 * @typedef {{ grid: Api.RunGrid, onCleared: OnCleared, onProblem: OnProblem }} Resuming
 * @typedef {Resuming & { onStopped: () => Promise<void> }} Deciding
 */

// The question that is asked first, whether it is, and what its answers do.
/** @param {Resuming} props */
function useResume({ grid, onCleared, onProblem }) {
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const carryOut = async () => {
    setAsking(false);
    setBusy(true);
    onProblem(null);
    await resume(grid.place, grid.run_id).then(onCleared, onProblem);
    setBusy(false);
  };
  const takeBack = () => setAsking(false);
  const press = () => (grid.resume.again > 0 ? setAsking(true) : carryOut());
  return { asking, busy, carryOut, press, takeBack };
}

// What is reused took so long when it was computed.
/** @param {Api.RunGrid} grid */
function explanationOf({ resume: preview, stages }) {
  const held = stages.reduce((sum, stage) => sum + stage.blocked, 0);
  const stays = held ? textOf("resume.held", { held }) : "";
  const seconds = preview.saved_seconds;
  const saved = seconds >= 1 ? ` ${textOf("resume.spares", { time: timeToGo(seconds) })}` : "";
  return preview.refusal ?? textOf("resume.it", { does: `${resumeCounts(preview)}${stays}` }) + saved;
}

/** @param {Resuming} props */
function ResumeButton({ grid, ...told }) {
  const { asking, busy, carryOut, press, takeBack } = useResume({ grid, ...told });
  const { refusal } = grid.resume;
  const needed = grid.state !== "success" || refusal === null; // what succeeded and is up to date needs no button
  return html`
    <${Stack} align="end" gap="1.5" maxW="360px" ml="auto">
      ${
        needed &&
        html`
          <${Button} aria-describedby="stagehold-explanation" colorPalette="brand" data-testid="resume"
            disabled=${refusal !== null || busy || asking} loading=${busy} loadingText=${textOf("resume.busy")}
            onClick=${press}
            size="lg" type="button">
            ${grid.state === "success" ? textOf("step.update") : textOf("step.resume")}
          <//>`
      }
      ${asking && refusal === null && html`<${Confirmation} grid=${grid} onNo=${takeBack} onYes=${carryOut} />`}
      <${Muted} data-testid="explanation" fontSize="sm" id="stagehold-explanation" textAlign="end">
        ${explanationOf(grid)}
      <//>
    <//>`;
}

// Which run the data comes from, where not all of it is this one's.
/** @param {{ origins: Api.Origins }} props */
function Origins({ origins: { computed, restored, reused, others, saved_seconds } }) {
  if (restored + reused.length === 0) return null;
  return html`
    <${Muted} data-testid="origins" fontSize="sm" overflowWrap="anywhere">
      ${textOf("origin.computed", { computed })}
      ${restored > 0 && textOf("origin.restored", { restored })}
      ${reused.map(
        ({ run_id, partitions }) => html`
          <span key=${run_id}>
            ${contentOf("origin.reused", { partitions, run: html`<${RunLink} runId=${run_id} />` })}
          </span>`,
      )}
      ${others > 0 && textOf("origin.others", { others })}
      ${saved_seconds >= 1 && textOf("origin.spared", { time: timeToGo(saved_seconds) })}
    <//>`;
}

/** @param {{ grid: Api.RunGrid, restore: Api.RestoredFrom }} props */
const RestoredFrom = ({ grid, restore }) => html`
  <${Text} data-testid="restored-from" fontSize="sm" mt="1" whiteSpace="pre-wrap">
    ${restoreText(restore, grid.resume.restored || countOf(grid.stages, "restored"))}
  <//>`;

/** @param {Deciding} props */
export const RunHeader = ({ grid, onStopped, ...told }) => html`
  <${Headline} data-state=${grid.state} data-testid="header" palette=${tone(grid)}>
    <${Flex} gap="6" justify="space-between" mb="4" wrap="wrap">
      <${Box} flex="1 1 320px">
        <${Flex} align="center" gap="3">
          ${grid.active && html`<${Spinner} color="running.solid" size="sm" />`}
          <${Heading} aria-live="polite" as="h2" data-testid="headline" size="lg">${grid.headline}<//>
        <//>
        <${Text} color="fg.muted" mt="1">
          ${textOf("header.for", { interval: grid.interval, pipeline: grid.pipeline })},${" "}
          <span data-testid="looked">${lookedText(grid.looked)}</span>
        <//>
        <${Origins} origins=${grid.origins} />
        ${
          grid.resumed &&
          html`
            <${Muted} data-testid="resumed" fontSize="sm">
              ${textOf("header.resumed", { at: clock(grid.resumed.at), by: grid.resumed.by })}
            <//>`
        }
        ${grid.restore && html`<${RestoredFrom} grid=${grid} restore=${grid.restore} />`}
      <//>
      <${Stack} gap="3" ml="auto">
        <${ResumeButton} grid=${grid} ...${told} />
        ${grid.may_stop && html`<${StopButtons} grid=${grid} onProblem=${told.onProblem} onStopped=${onStopped} />`}
      <//>
    <//>
    <${Bar} grid=${grid} />
  <//>`;
