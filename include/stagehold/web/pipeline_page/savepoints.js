// @ts-check
// Savepoints of the pipeline: what there is, and making, restoring and disposing of them.

import { refreshAirflow } from "../airflow_cache.js";
import {
  disposeOfSavepoint,
  fetchSavepointChoices,
  fetchSavepointStatus,
  fetchSavepoints,
  makeSavepoint,
  startRun,
} from "../api.js";
import { onEscape, useFocusBack } from "../focus.js";
import { clock, restoreOf } from "../formats.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import {
  Card,
  Columns,
  Field,
  html,
  Muted,
  Notice,
  onTyped,
  Problem,
  RunLink,
  Select,
  SmallButton,
  term,
} from "../ui.js";

const { useState } = globalThis.React;
const { Box, Button, Flex, Input, Text } = globalThis.ChakraUI;

const POLL_SECONDS = 2;

/** @param {number} seconds */
const later = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** @param {{ children: Content, onCancel: () => void, problem: Error | null } & Rest} props */
function Form({ children, onCancel, problem, ...rest }) {
  useFocusBack();
  return html`
    <${Box} as="form" bg="bg.subtle" borderTopWidth="1px" onKeyDown=${onEscape(onCancel)} px="4" py="3" ...${rest}>
      ${children}
      ${problem && html`<${Notice} mt="3" palette="failed" role="alert">${problem.message}<//>`}
    <//>`;
}

/**
 * @typedef {{ disabled?: boolean, noFirst?: boolean, palette?: string }} Looks and whether the focus is on "Not now"
 * @param {Looks & { yes: string, no: () => void, busy: boolean }} props
 */
const Buttons = ({ yes, no, busy, disabled = false, noFirst = false, palette = "brand" }) => html`
  <${Flex} gap="2" mt="3">
    <${Button} colorPalette=${palette} disabled=${disabled || busy} loading=${busy} loadingText=${yes} size="sm"
      type="submit">
      ${yes}
    <//>
    <${Button} autoFocus=${noFirst} disabled=${busy} onClick=${no} size="sm" type="button" variant="outline">
      ${textOf("button.no")}
    <//>
  <//>`;

// Runs `act` once at a time and keeps what went wrong.
/** @param {() => Promise<void>} act */
function useAct(act) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    await act().catch(setProblem);
    setBusy(false);
  };
  return { busy, problem, submit };
}

// Until it is made, or it is clear that it is not: attempts that are under way do their part first.
/**
 * @param {string} place
 * @param {Api.SavepointStatus} asked
 */
async function settled(place, asked) {
  let status = asked;
  while (status.state === "pending") {
    await later(POLL_SECONDS);
    status = await fetchSavepointStatus(place, asked.name);
  }
  if (status.state === "failed")
    throw new Error(textOf("savepoint.failed", { name: status.name, problem: status.failure }));
  return status;
}

/** @typedef {{ place: string, onDone: (text: string) => void, onCancel: () => void }} InForm */

/** @param {InForm & { runs: Api.RunChoice[] }} props */
function Create({ place, runs, onDone, onCancel }) {
  const [wish, setWish] = useState({ name: "", reason: "", run: runs[0].run_id, stop: false });
  /** @param {"name" | "reason"} field */
  const set = (field) => onTyped((value) => setWish({ ...wish, [field]: value }));
  const { busy, problem, submit } = useAct(async () => {
    const { name, reason, stop } = wish;
    const asked = await makeSavepoint(place, wish.run, { name: name.trim(), reason: reason.trim(), stop });
    const made = await settled(place, asked);
    onDone(textOf("savepoint.made", { name: made.name }));
  });
  return html`
    <${Form} data-testid="create" onCancel=${onCancel} onSubmit=${submit} problem=${problem}>
      <${Flex} gap="3" wrap="wrap">
        <${Select} flex="1 1 240px" label=${textOf("savepoint.run")} value=${wish.run}
          onChange=${(/** @type {string} */ run) => setWish({ ...wish, run })}
          options=${runs.map((one) => [one.run_id, `${one.interval}, ${one.state} (${one.run_id})`])} />
        <${Field} flex="1 1 160px" label=${textOf("filter.name")}>
          <${Input} autoFocus onChange=${set("name")} required size="sm" value=${wish.name} />
        <//>
        <${Field} flex="1 1 220px" label=${textOf("savepoint.reason")}>
          <${Input} maxLength=${1000} onChange=${set("reason")} size="sm" value=${wish.reason} />
        <//>
      <//>
      <${Flex} align="center" as="label" fontSize="sm" gap="2" mt="3">
        <input checked=${wish.stop} type="checkbox"
          onChange=${() => setWish({ ...wish, stop: !wish.stop })} />
        ${textOf("savepoint.stop")}
      <//>
      <${Buttons} busy=${busy} disabled=${!wish.name.trim()} no=${onCancel} yes=${textOf("savepoint.create")} />
    <//>`;
}

/** @param {InForm & { one: Api.SavepointLine }} props */
function Restore({ place, one, onDone, onCancel }) {
  const [interval, setInterval] = useState(one.interval);
  const { busy, problem, submit } = useAct(async () => {
    const run = await startRun(place, { interval: interval.trim(), restore: one.name, ...restoreOf(place) });
    refreshAirflow();
    onDone(textOf("savepoint.started", { interval: interval.trim(), name: one.name, run: run.dag_run_id }));
  });
  return html`
    <${Form} data-testid="restore" onCancel=${onCancel} onSubmit=${submit} problem=${problem}>
      <${Text} fontSize="sm" mb="3">
        ${textOf("savepoint.restores", { name: one.name })}
      <//>
      <${Field} flex="1 1 240px" label=${textOf("savepoint.interval")}>
        <${Input} autoFocus maxW="280px" onChange=${onTyped(setInterval)} required size="sm" value=${interval} />
      <//>
      <${Buttons} busy=${busy} disabled=${!interval.trim()} no=${onCancel} yes=${textOf("savepoint.start")} />
    <//>`;
}

/** @param {InForm & { one: Api.SavepointLine }} props */
function Dispose({ place, one, onDone, onCancel }) {
  const { busy, problem, submit } = useAct(async () => {
    const { notes } = await disposeOfSavepoint(place, one.name);
    onDone([textOf("savepoint.gone", { name: one.name }), ...notes].join(" "));
  });
  return html`
    <${Form} data-testid="dispose" onCancel=${onCancel} onSubmit=${submit} problem=${problem}>
      <${Text} fontSize="sm">
        ${textOf("savepoint.disposes", { name: one.name })}
      <//>
      <${Buttons} busy=${busy} no=${onCancel} noFirst palette="failed"
        yes=${textOf("savepoint.dispose_of", { name: one.name })} />
    <//>`;
}

// What may not be done says why.
/** @param {{ text: string, why: string | null, onClick: () => void }} props */
const Act = ({ text, why, onClick }) => html`
  <${SmallButton} disabled=${why !== null} onClick=${onClick} title=${why ?? undefined}>${text}<//>`;

/** @param {{ one: Api.SavepointLine }} props */
const Made = ({ one }) => html`
  <${Box} minW="140px">
    <${RunLink} runId=${one.run_id} title=${one.run_id}>${one.interval}<//>
    <${Muted}>
      ${textOf("savepoint.checkpoint", { number: `${one.number}` })}${one.imported && textOf("savepoint.imported")}
    <//>
  <//>`;

/** @typedef {{ kind: "restore" | "dispose", one: Api.SavepointLine } | { kind: "create" }} Action */

/**
 * @typedef {{ dispose: string | null, create: string | null, restore: string | null }} Refusals
 * @param {{ savepoints: Api.SavepointLine[], refusals: Refusals, onAct: (action: Action) => void }} props
 */
function List({ savepoints, refusals, onAct }) {
  const rows = savepoints.map((one) => [
    html`
      <${Box} data-testid="savepoint-${one.name}">
        <${Text} fontWeight="semibold" overflowWrap="anywhere" title=${one.manifest}>${one.name}<//>
        ${one.reason && html`<${Muted}>${one.reason}<//>`}
      <//>`,
    html`<${Made} one=${one} />`,
    html`<${Box}><${Text}>${one.created_by}<//><${Muted}>${clock(one.created_at)}<//><//>`,
    html`
      <${Flex} gap="2" justify="end">
        <${Act} onClick=${() => onAct({ kind: "restore", one })} text=${textOf("savepoint.restore")}
          why=${refusals.restore} />
        <${Act} onClick=${() => onAct({ kind: "dispose", one })} text=${textOf("savepoint.dispose")}
          why=${refusals.dispose} />
      <//>`,
  ]);
  const names = [textOf("savepoint.one"), textOf("column.of"), textOf("savepoint.made_by"), textOf("column.act")];
  return html`<${Columns} names=${names} rows=${rows} />`;
}

// Why the reader cannot do something; null if they can.
/**
 * @param {Api.SavepointChoices} choices
 * @returns {Refusals}
 */
function refusalsOf(choices) {
  const change = choices.may_change ? null : textOf("right.change");
  return {
    dispose: change ?? (choices.may_dispose ? null : textOf("right.dispose")),
    create: change ?? (choices.runs.length ? null : textOf("savepoint.no_runs")),
    restore: choices.may_restore ? null : textOf("right.start"),
  };
}

/** @param {InForm & { action: Action, runs: Api.RunChoice[] }} props */
function Acting({ action, runs, ...shared }) {
  if (action.kind === "create") return html`<${Create} runs=${runs} ...${shared} />`;
  const { kind, one } = action;
  return html`<${kind === "restore" ? Restore : Dispose} key="${kind} ${one.name}" one=${one} ...${shared} />`;
}

/** @param {{ place: string }} props */
export function Savepoints({ place }) {
  const [turn, setTurn] = useState(0);
  const [action, setAction] = useState(/** @type {Action | null} */ (null)); // whose form is open
  const [done, setDone] = useState(/** @type {string | null} */ (null));
  const ask = () => Promise.all([fetchSavepoints(place), fetchSavepointChoices(place)]);
  const { found, problem } = useAnswer(`${place} ${turn}`, ask);
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return null;
  const [savepoints, choices] = found;
  const refusals = refusalsOf(choices);
  const refusal = refusals.create ?? refusals.restore;
  const close = () => setAction(null);
  /** @param {Action} wanted */
  const open = (wanted) => {
    setDone(null);
    setAction(wanted);
  };
  /** @param {string} text */
  const finish = (text) => {
    close();
    setDone(text);
    setTurn(turn + 1);
  };
  const create = html`
    <${Act} onClick=${() => open({ kind: "create" })} text=${textOf("savepoint.create")} why=${refusals.create} />`;
  const shared = { place, onCancel: close, onDone: finish, runs: choices.runs };
  return html`
    <${Card} action=${create} data-testid="savepoints" note=${textOf("savepoint.note")}
      title=${term("savepoint", textOf("savepoint.title"))}>
      ${
        done &&
        html`<${Notice} borderRadius="0" data-testid="savepoint-done" palette="success" role="status">${done}<//>`
      }
      ${action && html`<${Acting} action=${action} ...${shared} />`}
      ${
        savepoints.length > 0
          ? html`<${List} onAct=${open} refusals=${refusals} savepoints=${savepoints} />`
          : html`<${Box} px="4" py="3"><${Muted} fontSize="sm">${textOf("savepoint.none")}<//><//>`
      }
      ${
        refusal &&
        html`<${Box} borderTopWidth="1px" data-testid="savepoint-refusal" px="4" py="2"><${Muted}>${refusal}<//><//>`
      }
    <//>`;
}
