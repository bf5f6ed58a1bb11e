// @ts-check
// The facts of the partition that was clicked, and what it does not meet of its gate, which may be waived here. Its
// stage may be computed once more, too.

import { again } from "../api.js";
import { bytes, clock, plural } from "../formats.js";
import { Fact, html, RunLink, SmallButton, Tag } from "../ui.js";
import { has, LOOKS, STANDINGS, wordsOf } from "./run_texts.js";
import { Waive, WaiveButton } from "./waive.js";

const { useState } = globalThis.React;
const { Box, Button, Flex, Text } = globalThis.ChakraUI;

/** @typedef {import("./run_header.js").Resuming} Resuming */

/** @param {Api.PartitionCell} cell */
const factsOf = (cell) =>
  Object.entries({
    State: LOOKS[cell.state].text,
    "On resume": `${cell.action}: ${cell.reason}`,
    Rows: cell.rows?.toLocaleString(),
    Size: cell.bytes === null ? null : bytes(cell.bytes),
    Took: cell.seconds === null ? null : `${cell.seconds.toFixed(1)} s`,
    Skewed: cell.skew,
    Attempt: cell.epoch === null ? null : `epoch ${cell.epoch}, wave ${cell.wave}`,
    "Table version": cell.version,
    Recorded: cell.recorded_at && clock(cell.recorded_at),
  }).filter(([, value]) => value !== null && value !== undefined);

/** @param {{ stage: Api.StageRow, cell: Api.PartitionCell, runId: string }} props */
const Facts = ({ stage, cell, runId }) => html`
  <${Flex} columnGap="6" px="4" py="3" rowGap="1" wrap="wrap">
    <${Text} fontWeight="semibold">${stage.name}[${cell.partition}]<//>
    ${factsOf(cell).map(([name, value]) => html`<${Fact} key=${name} name=${name}>${value}<//>`)}
    ${
      cell.run_id &&
      html`
        <${Fact} name="Computed by" data-testid="computed-by">
          ${cell.run_id.endsWith(`/${runId}`) ? "this run" : html`<${RunLink} runId=${cell.run_id} />`}
          ${cell.restored && ", restored from what this run begins with"}
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

/** @param {{ children: Content }} props */
const AgainLine = ({ children }) => html`
  <${Flex} align="center" borderTopWidth="1px" data-testid="again" gap="3" px="4" py="2" wrap="wrap">${children}<//>`;

// Even if nothing changed: asked twice, as it may take long.
/** @param {Resuming & { stage: Api.StageRow }} props */
function Again({ grid, stage, onCleared, onProblem }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const carryOut = async () => {
    setBusy(true);
    onProblem(null);
    await again(grid.dag_id, grid.run_id, stage.name).then(onCleared, onProblem);
    setAsking(false);
    setBusy(false);
  };
  if (!asking)
    return html`
      <${AgainLine}>
        <${SmallButton} onClick=${() => setAsking(true)}>Run ${stage.name} again, even if nothing changed<//>
      <//>`;
  return html`
    <${AgainLine}>
      <${Text} flex="1 1 320px">
        ${plural(stage.partitions, "partition")} of ${stage.name} will be computed once more.
        What reads them runs if they come out different.
      <//>
      <${Button} autoFocus colorPalette="brand" loading=${busy} onClick=${carryOut} size="xs" type="button">
        Run it again
      <//>
      <${SmallButton} onClick=${() => setAsking(false)}>Not now<//>
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
