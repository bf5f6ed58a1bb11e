// @ts-check
// The Stagehold tab of a run, loaded by Airflow's UI as a React app. Plain modules, no build step: React and Chakra are
// the ones Airflow puts on globalThis, so that the page follows its theme.

import { refreshAirflow } from "../airflow_cache.js";
import { useAirflowChoices } from "../airflow_choices.js";
import { fetchGrid } from "../api.js";
import { useFocusKept } from "../focus.js";
import { clock, placeOf, plural } from "../formats.js";
import { usePolled } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { html, Nothing, Notice, Page, Pipelines } from "../ui.js";
import { CHOSEN, useUrlState } from "../url_state.js";
import { AtWork } from "./at_work.js";
import { Attempts } from "./attempts.js";
import { Failures } from "./failures.js";
import { Gates } from "./gate_verdicts.js";
import { PartitionGrid } from "./partition_grid.js";
import { Preview } from "./preview.js";
import { RunHeader } from "./run_header.js";
import { RunHistory } from "./run_history.js";
import { ranges } from "./run_texts.js";

const { useState } = globalThis.React;
const { Code, Text } = globalThis.ChakraUI;

// Something is about to change: the run goes on, or its plan is being worked out.
/** @param {Api.RunGrid} grid */
const awaited = (grid) => !grid.planned && !grid.looked.problem;
/** @param {Api.RunGrid} grid */
const hurries = (grid) => grid.active || awaited(grid);

/** @param {{ problem: string }} props */
const Unseen = ({ problem }) => html`
  <${Notice} data-testid="unseen" palette="warning" role="alert">
    <${Text} fontWeight="semibold">${textOf("run.unseen")}<//>
    <${Text}>${problem}<//>
  <//>`;

const Unplanned = () => html`
  <${Notice} data-testid="unplanned" palette="running" role="status">
    ${textOf("run.unplanned")}
  <//>`;

/** @param {{ answer: Api.ResumeAnswer }} props */
const Cleared = ({ answer: { cleared } }) => html`
  <${Notice} data-testid="cleared" palette="running" role="status">
    <${Text} fontWeight="semibold">${textOf("run.cleared", { tasks: plural(cleared.length, "task") })}<//>
    ${cleared.map(({ name, reason }) => html`<${Text} key=${name}><${Code} size="sm">${name}<//> ${reason}<//>`)}
  <//>`;

/** @param {{ answer: Api.WaiveAnswer & { end: boolean } }} props */
function Waived({ answer: { stage, partitions, expectation, end } }) {
  const which = `${stage}[${ranges(partitions)}]`;
  const told = end
    ? [textOf("waived.back", { which }), " ", textOf("waived.blocks")]
    : [textOf("waived.done", { which }), " ", textOf("waived.publishes")];
  return html`
    <${Notice} data-testid="waived" palette=${end ? "warning" : "success"} role="status">
      <${Text} fontWeight="semibold">${told}<//>
      <${Text}>${expectation}<//>
    <//>`;
}

// Notifiers and lineage that failed: that fails no run, so that nobody would see it.
/** @param {{ lines: Api.HistoryLine[] }} props */
const Untold = ({ lines }) =>
  lines.length > 0 &&
  html`
    <${Notice} data-testid="untold" palette="warning" role="status">
      <${Text} fontWeight="semibold">${textOf("run.untold")}<//>
      ${lines.map(({ at, of, text }) => html`<${Text} key="${at} ${of}">${clock(at)}, ${of}: ${text}<//>`)}
    <//>`;

/** @param {{ dagId: string, runId: string }} props */
function RunPage({ dagId, runId }) {
  useAirflowChoices();
  const name = textOf("page.run");
  const [{ pipeline }, say] = useUrlState(CHOSEN);
  const place = placeOf(dagId, pipeline);
  const ask = (/** @type {string | null} */ known) => fetchGrid(place, runId, known);
  const { found: grid, problem, load, hurry } = usePolled(`${place}/${runId}`, ask, hurries);
  const [answer, setAnswer] = useState(/** @type {Api.ResumeAnswer | null} */ (null));
  const [refused, setRefused] = useState(/** @type {Error | null} */ (null));
  const [waived, setWaived] = useState(/** @type {(Api.WaiveAnswer & { end: boolean }) | null} */ (null));
  useFocusKept([answer, grid?.active]);
  if (grid === null) return html`<${Nothing} name=${name} problem=${problem} title=${textOf("page.unshown.run")} />`;
  /** @type {import("./run_header.js").OnCleared} */
  const noteCleared = (given) => {
    setAnswer(given);
    setWaived(null);
    hurry();
    refreshAirflow();
    return load();
  };
  const noteStopped = () => {
    setAnswer(null);
    hurry();
    refreshAirflow();
    return load();
  };
  /** @type {import("./waive.js").OnWaived} */
  const noteWaived = (given) => {
    setWaived(given);
    return load();
  };
  const told = { grid, onCleared: noteCleared, onProblem: setRefused, onWaived: noteWaived };
  return html`
    <${Page} data-testid="stagehold" name=${name} problem=${problem}>
      <${Pipelines} chosen=${grid.pipeline} places=${grid.places} say=${say} />
      <${RunHeader} ...${told} onStopped=${noteStopped} />
      ${refused && html`<${Notice} data-testid="refused" palette="failed" role="alert">${refused.message}<//>`}
      ${answer && (grid.active || grid.state !== "success") && html`<${Cleared} answer=${answer} />`}
      ${waived && html`<${Waived} answer=${waived} />`}
      ${grid.looked.problem && html`<${Unseen} problem=${grid.looked.problem} />`}
      ${awaited(grid) && html`<${Unplanned} />`}
      ${grid.active && html`<${AtWork} grid=${grid} />`}
      <${Failures} ...${told} />
      <${Untold} lines=${grid.untold ?? []} />
      ${grid.planned && html`<${PartitionGrid} ...${told} />`}
      <${Preview} grid=${grid} />
      <${Gates} grid=${grid} />
      <${Attempts} grid=${grid} />
      <${RunHistory} grid=${grid} />
    <//>`;
}

globalThis.AirflowPlugin = RunPage;
