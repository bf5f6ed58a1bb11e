// @ts-check
// The facts of the partition that was clicked, and what it does not meet of its gate, which may be waived here. Its
// stage may be computed once more, too.

import { again } from "../api.js";
import { onEscape, useFocusBack } from "../focus.js";
import { bytes, clock, lasted, plural } from "../formats.js";
import { number } from "../numbers.js";
import { textOf } from "../texts.js";
import { Fact, html, RunLink, SmallButton, Tag } from "../ui.js";
import { has, LOOKS, STANDINGS, wordsOf } from "./run_texts.js";
import { Waive, WaiveButton } from "./waive.js";

const { useState } = globalThis.React;
const { Box, Button, Flex, Text } = globalThis.ChakraUI;

/** @typedef {import("./run_header.js").Resuming} Resuming */

/** @param {Api.PartitionCell} cell */
const factsOf = (cell) =>
  Object.entries({
    state: LOOKS[cell.state].text,
    on_resume: `${cell.action}: ${cell.reason}`,
    rows: cell.rows === null ? null : number(cell.rows),
    size: cell.bytes === null ? null : bytes(cell.bytes),
    took: cell.seconds === null ? null : lasted(cell.seconds),
    skewed: cell.skew,
    attempt: cell.epoch === null ? null : textOf("fact.epoch", { epoch: `${cell.epoch}`, wave: `${cell.wave}` }),
    version: cell.version === null ? null : number(cell.version),
    recorded: cell.recorded_at && clock(cell.recorded_at),
  }).filter(([, value]) => value !== null && value !== undefined);

/** @param {string} name */
const factKey = (name) => /** @type {import("../texts.js").Key} */ (`fact.${name}`);

/** @param {{ stage: Api.StageRow, cell: Api.PartitionCell, runId: string }} props */
const Facts = ({ stage, cell, runId }) => html`
  <${Flex} columnGap="6" px="4" py="3" rowGap="1" wrap="wrap">
    <${Text} fontWeight="semibold">${stage.name}[${cell.partition}]<//>
    ${factsOf(cell).map(
      ([name, value]) => html`<${Fact} key=${name} name=${textOf(factKey(name))} word=${name}>${value}<//>`,
    )}
    ${
      cell.run_id &&
      html`
        <${Fact} name=${textOf("fact.computed_by")} data-testid="computed-by">
          ${cell.run_id.endsWith(`/${runId}`) ? textOf("fact.this_run") : html`<${RunLink} runId=${cell.run_id} />`}
          ${cell.restored && textOf("fact.restored")}
        <//>`
    }
  <//>`;

/** @param {{ grid: Api.RunGrid, failure: Api.GateFailure, onChoose: () => void }} props */
const Unmet = ({ grid, failure, onChoose }) => html`
  <${Flex} align="start" borderTopWidth="1px" gap="3" px="4" py="2" wrap="wrap">
    <${Tag} palette=${STANDINGS[failure.standing].palette}>${STANDINGS[failure.standing].text}<//>
    <${Box} flex="1 1 320px">
      <${Text}>${failure.expectation}<//>
      ${wordsOf(failure).map((text) => html`<${Text} data-testid="waiver" key=${text}>${text}<//>`)}
    <//>
    <${WaiveButton} grid=${grid} failure=${failure} onClick=${onChoose} />
  <//>`;

/** @param {{ stage: Api.StageRow, busy: boolean, onYes: () => void, onNo: () => void }} props */
function AgainQuestion({ stage, busy, onYes, onNo }) {
  useFocusBack();
  return html`
    <${Flex} align="center" flex="1 1 320px" gap="3" onKeyDown=${onEscape(onNo)} wrap="wrap">
      <${Text} flex="1 1 320px">
        ${textOf("again.question", { partitions: plural(stage.partitions, "partition"), stage: stage.name })}
      <//>
      <${Button} autoFocus colorPalette="brand" loading=${busy} onClick=${onYes} size="xs" type="button">
        ${textOf("again.yes")}
      <//>
      <${SmallButton} onClick=${onNo}>${textOf("button.no")}<//>
    <//>`;
}

// Even if nothing changed: asked twice, as it may take long.
/** @param {Resuming & { stage: Api.StageRow }} props */
function Again({ grid, stage, onCleared, onProblem }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const carryOut = async () => {
    setBusy(true);
    onProblem(null);
    await again(grid.place, grid.run_id, stage.name).then(onCleared, onProblem);
    setAsking(false);
    setBusy(false);
  };
  const takeBack = () => setAsking(false);
  return html`
    <${Flex} align="center" borderTopWidth="1px" data-testid="again" gap="3" px="4" py="2" wrap="wrap">
      <${SmallButton} aria-expanded=${asking} onClick=${() => setAsking(!asking)}>
        ${textOf("again.stage", { stage: stage.name })}
      <//>
      ${asking && html`<${AgainQuestion} busy=${busy} onNo=${takeBack} onYes=${carryOut} stage=${stage} />`}
    <//>`;
}

/**
 * @typedef {{ stage: Api.StageRow, cell: Api.PartitionCell, onWaived: import("./waive.js").OnWaived }} Chosen
 * @param {Chosen & Resuming} props
 */
export function ChosenPartition({ grid, stage, cell, onWaived, ...told }) {
  const [chosen, setChosen] = useState(/** @type {Api.GateFailure | null} */ (null));
  const unmet = grid.gate_failures
    .filter((one) => one.stage === stage.name && has(one.partitions, cell.partition))
    .map((one) => ({ ...one, past: (one.past ?? []).filter((word) => has(word.partitions, cell.partition)) }));
  /** @param {Api.GateFailure} failure */
  const choose = (failure) => setChosen({ ...failure, partitions: [[cell.partition, cell.partition]] });
  const close = () => setChosen(null);
  return html`
    <${Box} bg="bg.subtle" borderTopWidth="1px" data-testid="chosen" fontSize="sm">
      <${Facts} stage=${stage} cell=${cell} runId=${grid.run_id} />
      ${unmet.map(
        (failure) => html`
          <${Unmet} key=${failure.expectation} grid=${grid} failure=${failure}
            onChoose=${() => choose(failure)} />`,
      )}
      ${
        chosen &&
        html`
          <${Waive} key=${chosen.expectation} grid=${grid} failure=${chosen} onClose=${close} onWaived=${onWaived} />`
      }
      ${grid.may_change && !grid.active && html`<${Again} grid=${grid} stage=${stage} ...${told} />`}
    <//>`;
}
