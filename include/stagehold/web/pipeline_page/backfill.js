// Computing intervals again: which, what of them, what that would do, and the button that starts it.

import { fetchBackfill, startBackfill } from "../api.js";
import { Card, Notice } from "../card.js";
import { plural, timeToGo } from "../words.js";
import { Plan } from "./plan.js";

const { createElement: h, useEffect, useState } = globalThis.React;
const { Box, Button, Flex, Input, NativeSelect, Text } = globalThis.ChakraUI;

const ONLY = {
  "": "what is not up to date",
  missing: "what is missing",
  failed: "what failed or is blocked",
  stale: "what would come out differently now",
  all: "everything, once more",
};
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const ANY = "";
const AT_A_TIME = "4";

function Field({ label, width, children }) {
  return h(
    Box,
    { as: "label", display: "block", flex: `0 1 ${width}`, fontSize: "sm", minW: 0 },
    h(Text, { as: "span", color: "fg.muted", display: "block", mb: 1 }, label),
    children,
  );
}

function Select({ label, width, value, onChange, options }) {
  return h(
    Field,
    { label, width },
    h(
      NativeSelect.Root,
      { size: "sm" },
      h(
        NativeSelect.Field,
        { onChange: (event) => onChange(event.target.value), value },
        options.map(([key, text]) => h("option", { key, value: key }, text)),
      ),
      h(NativeSelect.Indicator),
    ),
  );
}

// Keys that are days have a calendar; of others, the words of the grid.
function IntervalField({ label, days, value, onChange }) {
  const rest = days ? { type: "date" } : { placeholder: "2026-11-20T02:00:00Z" };
  return h(
    Field,
    { label, width: days ? "170px" : "240px" },
    h(Input, { ...rest, onChange: (event) => onChange(event.target.value), required: true, size: "sm", value }),
  );
}

function Stages({ stages, chosen, onChoose }) {
  const toggle = (name) => onChoose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return h(
    Box,
    { as: "fieldset", border: 0, fontSize: "sm", m: 0, minW: 0, p: 0 },
    h(Text, { as: "legend", color: "fg.muted", mb: 1, p: 0 }, chosen.length ? "Stages" : "Stages: all of them"),
    h(
      Flex,
      { gap: 1.5, wrap: "wrap" },
      stages.map(({ name }) =>
        h(
          Button,
          {
            "aria-pressed": chosen.includes(name),
            colorPalette: chosen.includes(name) ? "brand" : undefined,
            key: name,
            onClick: () => toggle(name),
            size: "xs",
            type: "button",
            variant: chosen.includes(name) ? "subtle" : "outline",
          },
          name,
        ),
      ),
    ),
  );
}

function Started({ answer }) {
  const { intervals } = answer;
  const which = intervals.length > 1 ? `${intervals[0]} to ${intervals.at(-1)}` : (intervals[0] ?? "");
  return h(
    Notice,
    { "data-testid": "backfill-started", palette: "running", role: "status" },
    `Started: ${plural(intervals.length, "interval")}, ${which}. They show above when their runs begin.`,
  );
}

const wishOf = ({ first, last, stages, from, only }) => ({
  first,
  last,
  only: only || null,
  restore_from_stage: from || null,
  stages,
});

// The plan that was asked for, until something of the wish changes.
function usePlan(dagId, wish) {
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const key = JSON.stringify(wish);
  useEffect(() => {
    setPlan(null);
    setProblem(null);
  }, [key]);
  const ask = async () => {
    setBusy(true);
    await fetchBackfill(dagId, wish).then(setPlan, setProblem);
    setBusy(false);
  };
  return { plan, problem, setPlan, setProblem, busy, setBusy, ask };
}

function totals(plan) {
  const unknown = plan.unknown.length ? `, without ${plan.unknown.join(", ")}, of which no time is known` : "";
  const work = plan.seconds >= 1 ? `, about ${timeToGo(plan.seconds)} of work${unknown}` : "";
  const saved = plan.saved_seconds >= 1 ? ` That spares ${timeToGo(plan.saved_seconds)}.` : "";
  return `Runs ${plural(plan.runs, "partition")}${work}; reuses ${plan.reuses.toLocaleString()}.${saved}`;
}

function Start({ plan, busy, most, onMost, onStart }) {
  const running = plan.intervals.filter((one) => one.cells.some((cell) => cell.runs > 0));
  const refusal = plan.refusal ?? (running.length === 0 ? "There is nothing to compute." : null);
  return h(
    Flex,
    { align: "end", borderTopWidth: "1px", gap: 4, px: 4, py: 3, wrap: "wrap" },
    h(
      Box,
      { flex: "1 1 280px" },
      h(Text, { "data-testid": "backfill-totals", fontWeight: "semibold" }, totals(plan)),
      refusal && h(Text, { color: plan.refusal ? "failed.fg" : "fg.muted", fontSize: "sm" }, refusal),
    ),
    h(
      Field,
      { label: "Intervals at a time", width: "130px" },
      h(Input, {
        max: 100,
        min: 1,
        onChange: (event) => onMost(event.target.value),
        size: "sm",
        type: "number",
        value: most,
      }),
    ),
    h(
      Button,
      {
        colorPalette: "brand",
        "data-testid": "backfill-start",
        disabled: refusal !== null || busy || !(Number(most) >= 1),
        loading: busy,
        onClick: onStart,
        size: "sm",
        type: "button",
      },
      `Start ${plural(running.length, "interval")}`,
    ),
  );
}

export function Backfill({ dagId, page, range, onStarted }) {
  const [fields, setFields] = useState({ first: "", last: "", stages: [], from: ANY, only: ANY });
  const [most, setMost] = useState(AT_A_TIME);
  const [answer, setAnswer] = useState(null);
  const set = (name) => (value) => setFields((now) => ({ ...now, [name]: value }));
  useEffect(() => {
    if (range) setFields((now) => ({ ...now, ...range }));
  }, [range]);
  const wish = wishOf(fields);
  const { plan, problem, setPlan, setProblem, busy, setBusy, ask } = usePlan(dagId, wish);
  const stages = page.stages.filter((stage) => stage.stored);
  const days = [fields.first, fields.last, ...page.intervals.map((row) => row.interval)].every(
    (key) => key === "" || DAY.test(key),
  );
  const show = (event) => {
    event.preventDefault();
    setAnswer(null);
    return ask();
  };
  const start = async () => {
    setBusy(true);
    setProblem(null);
    try {
      setAnswer(await startBackfill(dagId, { ...wish, max_active: Number(most), token: plan.token }));
      setPlan(null);
      onStarted();
    } catch (refused) {
      // What would run is not any more what was shown: that is said, next to what it is now.
      if (refused.status === 409) await ask();
      setProblem(refused);
    }
    setBusy(false);
  };
  return h(
    Card,
    { "data-testid": "backfill", note: "choose intervals above, or dates that have not run yet", title: "Backfill" },
    h(
      Flex,
      { as: "form", direction: "column", gap: 3, onSubmit: show, pb: 4, px: 4 },
      h(
        Flex,
        { align: "end", gap: 3, wrap: "wrap" },
        h(IntervalField, { days, label: "From", onChange: set("first"), value: fields.first }),
        h(IntervalField, { days, label: "To", onChange: set("last"), value: fields.last }),
        h(Select, {
          label: "Compute",
          onChange: set("only"),
          options: Object.entries(ONLY),
          value: fields.only,
          width: "260px",
        }),
        h(Select, {
          label: "Anew from",
          onChange: set("from"),
          options: [[ANY, "no stage"], ...stages.map(({ name }) => [name, name])],
          value: fields.from,
          width: "200px",
        }),
        h(
          Button,
          {
            disabled: !fields.first || !fields.last,
            loading: busy && !plan,
            size: "sm",
            type: "submit",
            variant: "outline",
          },
          "Show the plan",
        ),
      ),
      h(Stages, { chosen: fields.stages, onChoose: set("stages"), stages }),
    ),
    problem &&
      h(
        Box,
        { pb: 3, px: 4 },
        h(Notice, { "data-testid": "backfill-problem", palette: "failed", role: "alert" }, problem.message),
      ),
    answer && h(Box, { pb: 3, px: 4 }, h(Started, { answer })),
    plan && h(Plan, { plan }),
    plan && h(Start, { busy, most, onMost: setMost, onStart: start, plan }),
  );
}
