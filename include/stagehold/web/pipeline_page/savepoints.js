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
import { useAnswer } from "../asking.js";
import { Card, Columns, Notice } from "../card.js";
import { clock, runPage } from "../words.js";

const { createElement: h, useState } = globalThis.React;
const { Box, Button, Flex, Input, Link, NativeSelect, Text } = globalThis.ChakraUI;

const POLL_SECONDS = 2;
const NO_CHANGE = "You may see runs of this DAG but not change them. Ask somebody who may edit it.";
const NO_RESTORE = "You may not start runs of this DAG. Ask somebody who may.";
const NO_RUNS = "Airflow has started no run of this pipeline yet, so there is nothing to keep.";

const muted = (text, rest) => h(Text, { color: "fg.muted", fontSize: "xs", ...rest }, text);

const later = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

function Field({ label, width, children }) {
  return h(
    Box,
    { as: "label", display: "block", flex: `1 1 ${width}`, fontSize: "sm", minW: 0 },
    h(Text, { as: "span", color: "fg.muted", display: "block", mb: 1 }, label),
    children,
  );
}

function Form({ children, problem, ...rest }) {
  return h(
    Box,
    { as: "form", bg: "bg.subtle", borderTopWidth: "1px", px: 4, py: 3, ...rest },
    children,
    problem && h(Notice, { mt: 3, palette: "failed", role: "alert" }, problem.message),
  );
}

function Buttons({ yes, no, busy, disabled, palette = "brand" }) {
  return h(
    Flex,
    { gap: 2, mt: 3 },
    h(
      Button,
      {
        colorPalette: palette,
        disabled: disabled || busy,
        loading: busy,
        loadingText: yes,
        size: "sm",
        type: "submit",
      },
      yes,
    ),
    h(Button, { disabled: busy, onClick: no, size: "sm", type: "button", variant: "outline" }, "Not now"),
  );
}

// Runs `act` once at a time and keeps what went wrong.
function useAct(act) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
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
async function settled(dagId, asked) {
  let status = asked;
  while (status.state === "pending") {
    await later(POLL_SECONDS);
    status = await fetchSavepointStatus(dagId, asked.name);
  }
  if (status.state === "failed") throw new Error(`There is no savepoint ${status.name}: ${status.failure}`);
  return status;
}

function Create({ dagId, runs, onDone, onCancel }) {
  const [wish, setWish] = useState({ name: "", reason: "", run: runs[0].run_id, stop: false });
  const set = (field) => (event) => setWish({ ...wish, [field]: event.target.value });
  const { busy, problem, submit } = useAct(async () => {
    const { name, reason, stop } = wish;
    const asked = await makeSavepoint(dagId, wish.run, { name: name.trim(), reason: reason.trim(), stop });
    const made = await settled(dagId, asked);
    onDone(`Savepoint ${made.name} is made.`);
  });
  return h(
    Form,
    { "data-testid": "create", onSubmit: submit, problem },
    h(
      Flex,
      { gap: 3, wrap: "wrap" },
      h(
        Field,
        { label: "Of the run", width: "240px" },
        h(
          NativeSelect.Root,
          { size: "sm" },
          h(
            NativeSelect.Field,
            { onChange: set("run"), value: wish.run },
            runs.map((one) =>
              h("option", { key: one.run_id, value: one.run_id }, `${one.interval}, ${one.state} (${one.run_id})`),
            ),
          ),
          h(NativeSelect.Indicator),
        ),
      ),
      h(
        Field,
        { label: "Name", width: "160px" },
        h(Input, { autoFocus: true, onChange: set("name"), required: true, size: "sm", value: wish.name }),
      ),
      h(
        Field,
        { label: "What for?", width: "220px" },
        h(Input, { maxLength: 1000, onChange: set("reason"), size: "sm", value: wish.reason }),
      ),
    ),
    h(
      Flex,
      { align: "center", as: "label", fontSize: "sm", gap: 2, mt: 3 },
      h("input", {
        checked: wish.stop,
        onChange: (event) => setWish({ ...wish, stop: event.target.checked }),
        type: "checkbox",
      }),
      "End the run with it, behind the wave that it is at",
    ),
    h(Buttons, { busy, disabled: !wish.name.trim(), no: onCancel, yes: "Create savepoint" }),
  );
}

function Restore({ dagId, one, onDone, onCancel }) {
  const [interval, setInterval] = useState(one.interval);
  const { busy, problem, submit } = useAct(async () => {
    const run = await startRun(dagId, { interval: interval.trim(), restore: one.name });
    refreshAirflow();
    onDone(`Started ${run.dag_run_id}: it begins with ${one.name}, for ${interval.trim()}.`);
  });
  return h(
    Form,
    { "data-testid": "restore", onSubmit: submit, problem },
    h(
      Text,
      { fontSize: "sm", mb: 3 },
      `A new run begins with what ${one.name} has, in place of what the interval has. What it lacks is computed; `,
      "the savepoint stays as it is. Airflow's own form has the other choices of a restore.",
    ),
    h(
      Field,
      { label: "For the interval", width: "240px" },
      h(Input, {
        autoFocus: true,
        maxW: "280px",
        onChange: (event) => setInterval(event.target.value),
        required: true,
        size: "sm",
        value: interval,
      }),
    ),
    h(Buttons, { busy, disabled: !interval.trim(), no: onCancel, yes: "Start the run" }),
  );
}

function Dispose({ dagId, one, onDone, onCancel }) {
  const { busy, problem, submit } = useAct(async () => {
    const { notes } = await disposeOfSavepoint(dagId, one.name);
    onDone([`Savepoint ${one.name} is gone.`, ...notes].join(" "));
  });
  return h(
    Form,
    { "data-testid": "dispose", onSubmit: submit, problem },
    h(
      Text,
      { fontSize: "sm" },
      `Nobody can restore ${one.name} afterwards. Data that only it needs goes with the next \`stagehold gc\`.`,
    ),
    h(Buttons, { busy, no: onCancel, palette: "failed", yes: `Dispose of ${one.name}` }),
  );
}

const FORMS = { dispose: Dispose, restore: Restore };

function Act({ text, why, onClick }) {
  return h(
    Button,
    { disabled: why !== null, onClick, size: "xs", title: why ?? undefined, type: "button", variant: "outline" },
    text,
  );
}

function Made({ one }) {
  const page = runPage(one.run_id);
  return h(
    Box,
    { minW: "140px" },
    page ? h(Link, { href: page, textDecoration: "underline", title: one.run_id }, one.interval) : one.interval,
    muted(`checkpoint ${one.number}${one.imported ? ", imported" : ""}`),
  );
}

function List({ savepoints, refusals, onAct }) {
  const rows = savepoints.map((one) => [
    h(
      Box,
      { "data-testid": `savepoint-${one.name}` },
      h(Text, { fontWeight: "semibold", overflowWrap: "anywhere", title: one.manifest }, one.name),
      one.reason && muted(one.reason),
    ),
    h(Made, { one }),
    h(Box, null, h(Text, null, one.created_by), muted(clock(one.created_at))),
    h(
      Flex,
      { gap: 2, justify: "end" },
      h(Act, { onClick: () => onAct("restore", one), text: "Restore", why: refusals.restore }),
      h(Act, { onClick: () => onAct("dispose", one), text: "Dispose", why: refusals.change }),
    ),
  ]);
  return h(Columns, { names: ["Savepoint", "Of", "Made by", ""], rows });
}

// Why the reader cannot do something; null if they can.
function refusalsOf(choices) {
  const change = choices.may_change ? null : NO_CHANGE;
  return {
    change,
    create: change ?? (choices.runs.length ? null : NO_RUNS),
    restore: choices.may_restore ? null : NO_RESTORE,
  };
}

export function Savepoints({ dagId }) {
  const [turn, setTurn] = useState(0);
  const [act, setAct] = useState(null); // which form is open, and for which savepoint
  const [done, setDone] = useState(null);
  const ask = () => Promise.all([fetchSavepoints(dagId), fetchSavepointChoices(dagId)]);
  const { found, problem } = useAnswer(`${dagId} ${turn}`, ask);
  if (problem) return h(Notice, { palette: "warning", role: "alert" }, problem.message);
  if (!found) return null;
  const [savepoints, choices] = found;
  const refusals = refusalsOf(choices);
  const close = () => setAct(null);
  const open = (kind, one) => {
    setDone(null);
    setAct({ kind, one });
  };
  const finish = (text) => {
    close();
    setDone(text);
    setTurn(turn + 1);
  };
  const create = h(Act, { onClick: () => open("create"), text: "Create savepoint", why: refusals.create });
  const shared = { dagId, onCancel: close, onDone: finish };
  return h(
    Card,
    { action: create, "data-testid": "savepoints", note: "kept until you dispose of them", title: "Savepoints" },
    done && h(Notice, { borderRadius: 0, "data-testid": "savepoint-done", palette: "success", role: "status" }, done),
    act?.kind === "create" && h(Create, { ...shared, runs: choices.runs }),
    act && FORMS[act.kind] && h(FORMS[act.kind], { ...shared, key: `${act.kind} ${act.one.name}`, one: act.one }),
    savepoints.length > 0 && h(List, { onAct: open, refusals, savepoints }),
    savepoints.length === 0 && h(Box, { px: 4, py: 3 }, muted("There are none.", { fontSize: "sm" })),
    (refusals.create ?? refusals.restore) &&
      h(
        Box,
        { borderTopWidth: "1px", "data-testid": "savepoint-refusal", px: 4, py: 2 },
        muted(refusals.create ?? refusals.restore),
      ),
  );
}
