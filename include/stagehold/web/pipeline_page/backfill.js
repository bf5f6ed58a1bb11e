// @ts-check
// Computing intervals again: which, what of them, what that would do, and the button that starts it.

import { fetchBackfill, Refused, startBackfill } from "../api.js";
import { plural, timeToGo } from "../formats.js";
import { textOf } from "../texts.js";
import { Card, Field, html, Notice, onTyped, Select, SmallButton, term } from "../ui.js";
import { useUrlState } from "../url_state.js";
import { BackfillPlan } from "./backfill_plan.js";

const { useEffect, useRef, useState } = globalThis.React;
const { Box, Button, Flex, Input, Text } = globalThis.ChakraUI;

/** @typedef {import("../api.js").BackfillWish} Wish */

/** @type {Api.Only[]} */
const ONLY = ["missing", "failed", "stale", "all"];
const only = () => [["", textOf("only.old")], ...ONLY.map((one) => [one, textOf(`only.${one}`)])];
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const ANY = "";
const AT_A_TIME = "4";
const POLL_MS = 1500; // while a plan is made
const IN_URL = "backfill";

/** @typedef {{ label: string, value: string, onChange: (value: string) => void }} Typed */

/** @param {Typed & { width: string } & Rest} props */
const TypedField = ({ label, width, onChange, ...rest }) => html`
  <${Field} flex="0 1 ${width}" label=${label}>
    <${Input} onChange=${onTyped(onChange)} size="sm" ...${rest} />
  <//>`;

// Keys that are days have a calendar; of others, the words of the grid.
/** @param {Typed & { days: boolean }} props */
const IntervalField = ({ days, ...rest }) =>
  days
    ? html`<${TypedField} required type="date" width="170px" ...${rest} />`
    : html`<${TypedField} placeholder="2026-11-20T02:00:00Z" required width="240px" ...${rest} />`;

/** @param {{ stages: Api.StageColumn[], chosen: string[], onChoose: (chosen: string[]) => void }} props */
function Stages({ stages, chosen, onChoose }) {
  /** @param {string} name */
  const toggle = (name) => onChoose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`
    <${Box} as="fieldset" border="0" fontSize="sm" m="0" minW="0" p="0">
      <${Text} as="legend" color="fg.muted" mb="1" p="0">
        ${chosen.length ? textOf("backfill.stages") : textOf("backfill.all_stages")}
      <//>
      <${Flex} gap="1.5" wrap="wrap">
        ${stages.map(({ name }) => {
          const looks = chosen.includes(name) ? { colorPalette: "brand", variant: "subtle" } : {};
          return html`
            <${SmallButton} aria-pressed=${chosen.includes(name)} key=${name} onClick=${() => toggle(name)} ...${looks}>
              ${name}
            <//>`;
        })}
      <//>
    <//>`;
}

/** @param {{ answer: Api.BegunBackfill }} props */
function Started({ answer: { intervals } }) {
  const [first = "", last = first] = [intervals[0], intervals.at(-1)];
  const which = first === last ? first : textOf("range.both", { first, last });
  return html`
    <${Notice} data-testid="backfill-started" palette="running" role="status">
      ${textOf("backfill.started", { intervals: plural(intervals.length, "interval"), which })}
    <//>`;
}

/**
 * @typedef {{ first: string, last: string, stages: string[], from: string, only: Api.Only | "" }} Fields
 * @param {Fields} fields
 * @returns {Wish}
 */
const wishOf = ({ first, last, stages, from, only }) => ({
  first,
  last,
  only: only || null,
  restore_from_stage: from || null,
  stages,
});

/** @type {(milliseconds: number) => Promise<void>} */
const passed = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// The plan that was asked for, until something of the wish changes, and what came of starting it. A large plan is made
// whether anybody waits for it or not.
/**
 * @param {string} place
 * @param {Wish} wish
 * @param {() => void} onStarted
 */
function useBackfill(place, wish, onStarted) {
  const [plan, setPlan] = useState(/** @type {Api.ShownBackfill | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const [answer, setAnswer] = useState(/** @type {Api.BegunBackfill | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [underWay, setUnderWay] = useState(/** @type {Api.PlanUnderWay | null} */ (null));
  const key = JSON.stringify(wish);
  const wanted = useRef(/** @type {string | null} */ (key));
  useEffect(() => {
    wanted.current = key;
    setPlan(null);
    setProblem(null);
    setUnderWay(null);
    return () => {
      wanted.current = null;
    };
  }, [key]);
  const ask = async () => {
    setBusy(true);
    try {
      let answer = await fetchBackfill(place, wish);
      while ("planned" in answer && wanted.current === key) {
        setUnderWay(answer);
        await passed(POLL_MS);
        answer = await fetchBackfill(place, wish);
      }
      if (wanted.current === key && !("planned" in answer)) setPlan(answer);
    } catch (refused) {
      if (wanted.current === key) setProblem(/** @type {Error} */ (refused));
    }
    setUnderWay(null);
    setBusy(false);
  };
  const show = () => {
    setAnswer(null);
    return ask();
  };
  const start = async (/** @type {{ token: string, max_active: number }} */ shown) => {
    setBusy(true);
    setProblem(null);
    try {
      setAnswer(await startBackfill(place, { ...wish, ...shown }));
      setPlan(null);
      onStarted();
    } catch (refused) {
      // What would run is not any more what was shown: that is said, next to what it is now.
      if (refused instanceof Refused && refused.status === 409) await ask();
      setProblem(/** @type {Error} */ (refused));
    }
    setBusy(false);
  };
  return { answer, busy, plan, problem, show, start, underWay };
}

/** @param {{ underWay: Api.PlanUnderWay }} props */
function UnderWay({ underWay: { planned, of } }) {
  const intervals = plural(of ?? 0, "interval");
  const done = of === null ? textOf("backfill.waits") : textOf("backfill.planned", { intervals, planned });
  return html`
    <${Notice} data-testid="backfill-under-way" palette="running" role="status">
      ${`${done} ${textOf("backfill.leave")}`}
    <//>`;
}

/** @param {Api.ShownBackfill} plan */
function totals(plan) {
  const unknown = plan.unknown.length ? textOf("backfill.unknown", { stages: plan.unknown.join(", ") }) : "";
  const work = plan.seconds >= 1 ? textOf("backfill.work", { time: timeToGo(plan.seconds) }) + unknown : "";
  const saved = plan.saved_seconds >= 1 ? ` ${textOf("backfill.spares", { time: timeToGo(plan.saved_seconds) })}` : "";
  const runs = textOf("backfill.runs", { partitions: plural(plan.runs, "partition") });
  return `${runs}${work}${textOf("backfill.reuses", { reuses: plan.reuses })}${saved}`;
}

/**
 * @typedef {(shown: { token: string, max_active: number }) => Promise<void>} OnStart
 * @typedef {{ most: string, onMost: (most: string) => void }} Most intervals at a time, as typed
 * @param {Most & { plan: Api.ShownBackfill, busy: boolean, onStart: OnStart }} props
 */
function Start({ plan, busy, most, onMost, onStart }) {
  const running = plan.intervals.filter((one) => one.cells.some((cell) => cell.runs > 0));
  const refusal = plan.refusal ?? (running.length === 0 ? textOf("backfill.nothing") : null);
  const start = () => onStart({ token: plan.token, max_active: Number(most) });
  return html`
    <${Flex} align="end" borderTopWidth="1px" gap="4" px="4" py="3" wrap="wrap">
      <${Box} flex="1 1 280px">
        <${Text} data-testid="backfill-totals" fontWeight="semibold">${totals(plan)}<//>
        ${refusal && html`<${Text} color=${plan.refusal ? "failed.fg" : "fg.muted"} fontSize="sm">${refusal}<//>`}
        ${plan.remark && html`<${Text} data-testid="backfill-remark" fontSize="sm">${plan.remark}<//>`}
        ${plan.released && html`<${Text} data-testid="backfill-released" fontSize="sm">${plan.released}<//>`}
        ${plan.along && html`<${Text} data-testid="backfill-along" fontSize="sm">${plan.along}<//>`}
      <//>
      <${TypedField} label=${textOf("backfill.most")} max=${100} min=${1} onChange=${onMost} type="number" value=${most}
        width="130px" />
      <${Button} colorPalette="brand" data-testid="backfill-start" loading=${busy} onClick=${start} size="sm"
        type="button" disabled=${refusal !== null || busy || !(Number(most) >= 1)}>
        ${textOf("backfill.start", { intervals: plural(running.length, "interval") })}
      <//>
    <//>`;
}

/**
 * @typedef {(name: keyof Fields) => (value: string | string[]) => void} SetField
 * @typedef {{ fields: Fields, set: SetField, onShow: (event: Event) => void }} Wished
 * @param {Wished & { page: Api.IntervalPage, busy: boolean }} props
 */
function WishForm({ fields, set, page, busy, onShow }) {
  const stages = page.stages.filter((stage) => stage.stored);
  const keys = [fields.first, fields.last, ...page.intervals.map((row) => row.interval)];
  const days = keys.every((key) => key === "" || DAY.test(key));
  return html`
    <${Flex} as="form" direction="column" gap="3" onSubmit=${onShow} pb="4" px="4">
      <${Flex} align="end" gap="3" wrap="wrap">
        <${IntervalField} days=${days} label=${textOf("range.from")} onChange=${set("first")} value=${fields.first} />
        <${IntervalField} days=${days} label=${textOf("range.to")} onChange=${set("last")} value=${fields.last} />
        <${Select} flex="0 1 260px" label=${textOf("backfill.compute")} onChange=${set("only")} options=${only()}
          value=${fields.only} />
        <${Select} flex="0 1 200px" label=${textOf("backfill.anew")} onChange=${set("from")} value=${fields.from}
          options=${[[ANY, textOf("backfill.no_stage")], ...stages.map(({ name }) => [name, name])]} />
        <${Button} disabled=${!fields.first || !fields.last} loading=${busy} size="sm" type="submit" variant="outline">
          ${textOf("backfill.show")}
        <//>
      <//>
      <${Stages} chosen=${fields.stages} onChoose=${set("stages")} stages=${stages} />
    <//>`;
}

/** @type {Fields} */
const NO_FIELDS = { first: "", last: "", stages: [], from: ANY, only: ANY };

// What the plan was asked for with is said in the address: whoever comes back sees it again, or how far it is.
/**
 * @param {Fields} fields
 * @param {(fields: Fields) => void} setFields
 * @param {() => Promise<void>} show
 */
function useShownInUrl(fields, setFields, show) {
  const [said, say] = useUrlState([IN_URL]);
  const [came, setCame] = useState(said[IN_URL] ?? "");
  useEffect(() => {
    if (came) setFields({ ...NO_FIELDS, ...parsed(came) });
  }, []);
  useEffect(() => {
    if (came && fields.first) {
      setCame("");
      show();
    }
  }, [fields]);
  return (/** @type {Event} */ event) => {
    event.preventDefault();
    say({ [IN_URL]: JSON.stringify(fields) }, { replace: true });
    return show();
  };
}

// Nothing of an address that somebody wrote by hand and that cannot be understood.
/** @type {(text: string) => Partial<Fields>} */
function parsed(text) {
  try {
    const found = JSON.parse(text);
    return typeof found.first === "string" && Array.isArray(found.stages) ? found : {};
  } catch {
    return {};
  }
}

/**
 * @typedef {import("./interval_grid.js").Range} Range
 * @param {{ place: string, page: Api.IntervalPage, range: Range | null, onStarted: () => void }} props
 */
export function Backfill({ place, page, range, onStarted }) {
  const [fields, setFields] = useState(NO_FIELDS);
  const [most, setMost] = useState(AT_A_TIME);
  /** @type {SetField} */
  const set = (name) => (value) => setFields((now) => ({ ...now, [name]: value }));
  useEffect(() => {
    if (range) setFields((now) => ({ ...now, ...range }));
  }, [range]);
  const { answer, busy, plan, problem, show, start, underWay } = useBackfill(place, wishOf(fields), onStarted);
  const onShow = useShownInUrl(fields, setFields, show);
  return html`
    <${Card} data-testid="backfill" note=${textOf("backfill.note")}
      title=${term("backfill", textOf("backfill.title"))}>
      <${WishForm} busy=${busy && !plan} fields=${fields} onShow=${onShow} page=${page} set=${set} />
      ${underWay && html`<${Box} pb="3" px="4"><${UnderWay} underWay=${underWay} /><//>`}
      ${
        problem &&
        html`
          <${Box} pb="3" px="4">
            <${Notice} data-testid="backfill-problem" palette="failed" role="alert">${problem.message}<//>
          <//>`
      }
      ${answer && html`<${Box} pb="3" px="4"><${Started} answer=${answer} /><//>`}
      ${plan && html`<${BackfillPlan} plan=${plan} />`}
      ${plan && html`<${Start} busy=${busy} most=${most} onMost=${setMost} onStart=${start} plan=${plan} />`}
    <//>`;
}
