// @ts-check
// The page of all pipelines in Airflow's menu, loaded by its UI as a React app. Plain modules, no build step, as
// run_page.js.

import { useAirflowChoices } from "../airflow_choices.js";
import { fetchOverview, fetchSizes, fetchStaleOverview } from "../api.js";
import { bareClock, plural, zoned } from "../formats.js";
import { number } from "../numbers.js";
import { useAnswer, usePolled } from "../server_hooks.js";
import { meaningOf, textOf } from "../texts.js";
import {
  Card,
  Columns,
  Headline,
  html,
  Loading,
  Muted,
  Nothing,
  Page,
  Pressable,
  SmallButton,
  Steps,
  term,
} from "../ui.js";
import { useUrlState } from "../url_state.js";
import { Filters } from "./filters.js";
import { KINDS, KINDS_IN_ORDER } from "./overview_texts.js";
import { PipelineLines } from "./pipeline_lines.js";
import { Storage, Versions } from "./storage.js";

const { useEffect, useRef, useState } = globalThis.React;
const { Code, Flex, Grid, Heading, Stack, Text } = globalThis.ChakraUI;

const SELDOM_SECONDS = 60;
const SOON_SECONDS = 3;
const MOST_LEASES = 20;
const PAGE = 50;
const ASKED = ["search", "kind", "tag", "owner", "order", "offset"];

// Asked for apart and seldom, as it takes long to work out; soon again while that is `underWay`, and after the first
// time, when the answer may be as old as the last look at this page. `key` says all that the question depends on.
/**
 * @template T
 * @param {string} key
 * @param {() => Promise<T>} ask
 * @param {(found: T) => boolean} underWay
 */
function useSeldom(key, ask, underWay) {
  const [turn, setTurn] = useState(0);
  const { found } = useAnswer(`${turn} ${key}`, ask);
  useEffect(() => {
    const seconds = turn === 0 || (found && underWay(found)) ? SOON_SECONDS : SELDOM_SECONDS;
    const timer = setTimeout(() => setTurn(turn + 1), seconds * 1000);
    return () => clearTimeout(timer);
  }, [turn, found]);
  return found;
}

/** @typedef {import("../url_state.js").Said} Said */
/** @typedef {import("../url_state.js").Say} Say */
/** @typedef {{ asked: Said, say: Say }} Asking what the address asks for, and how to ask for something else */

// How many pipelines are of a kind; a press shows only those. Those that are stale are counted when somebody asks.
/** @param {Asking & { kind: Api.PipelineKind, count: number | undefined }} props */
function Tile({ kind, count, asked, say }) {
  const { mark, palette, text } = KINDS[kind];
  const pressed = asked.kind === kind;
  const edge = count ? { borderTopColor: `${palette}.solid` } : {};
  const able = count !== 0 || pressed;
  const looks = able
    ? { cursor: "pointer", opacity: 1, _hover: { bg: "bg.subtle" } }
    : { cursor: "default", opacity: 0.55 };
  return html`
    <${Pressable} aria-pressed=${pressed} bg=${pressed ? "bg.emphasized" : "bg"} borderRadius="lg" borderWidth="1px"
      css=${{ "&&": { ...edge, borderTopWidth: "3px" } }} data-testid="tile-${kind}" disabled=${!able}
      onClick=${() => say({ kind: pressed ? "" : kind, offset: "" })} px="2.5" py="3" textAlign="start"
      title=${meaningOf(kind)} ...${looks}>
      <${Text} fontSize="2xl" fontWeight="semibold" lineHeight="1.1">${count === undefined ? "?" : number(count)}<//>
      <${Text} color=${able ? `${palette}.fg` : "fg.muted"} fontSize="sm" whiteSpace="nowrap">${mark} ${text}<//>
    <//>`;
}

/** @param {Asking & { kinds: Api.Overview["kinds"] }} props */
const Tiles = ({ kinds, ...asking }) => html`
  <${Grid} gap="2" templateColumns="repeat(auto-fit, minmax(7rem, 1fr))">
    ${KINDS_IN_ORDER.filter((kind) => kind !== "hidden" || kinds.hidden).map(
      (kind) => html`
        <${Tile} count=${kinds[kind] ?? (kind === "stale" && asking.asked.kind !== kind ? undefined : 0)} kind=${kind}
          key=${kind} ...${asking} />`,
    )}
  <//>`;

// Which of those that were found are shown, and the way to the others.
/** @param {Asking & { all: Api.Overview, turning: boolean }} props */
function Turns({ all, asked, say, turning }) {
  const first = Number(asked.offset ?? 0);
  const last = first + all.pipelines.length;
  if (first === 0 && last === all.found) return null;
  /** @type {(text: string, able: boolean, offset: number) => unknown} */
  const turn = (text, able, offset) => html`
    <${SmallButton} disabled=${!able || turning} onClick=${() => say({ offset: offset > 0 ? `${offset}` : "" })}>
      ${text}
    <//>`;
  return html`
    <${Flex} align="center" borderTopWidth="1px" data-testid="turns" gap="3" px="4" py="2">
      ${turn(textOf("turn.before"), first > 0, first - PAGE)}
      ${turn(textOf("turn.after"), last < all.found, first + PAGE)}
      <${Muted}>
        ${
          all.pipelines.length > 0
            ? textOf("turn.part", { all: all.found, first: first + 1, last })
            : textOf("turn.none", { all: all.found })
        }
      <//>
      ${turning && html`<${Loading} size="sm" />`}
    <//>`;
}

/**
 * @typedef {{ sizes: Api.SizesSeen | null, stale: Api.StaleOverview | null }} Apart what is asked for apart
 * @param {Asking & Apart & { all: Api.Overview, turning: boolean, onStarted: () => void }} props
 */
function All({ all, turning, sizes, stale, onStarted, ...asking }) {
  const { pipelines, looked, found, total, kinds } = all;
  const note = found === total ? plural(total, "pipeline") : textOf("turn.found", { all: total, found });
  return html`
    <${Stack} gap="4">
      <${Tiles} kinds=${kinds} ...${asking} />
      <${Card} data-testid="pipelines" note=${note} title=${textOf("line.title")}>
        <${Filters} all=${all} ...${asking} />
        <${PipelineLines} looked=${looked} onStarted=${onStarted} rows=${pipelines} sizes=${sizes} stale=${stale} />
        <${Turns} all=${all} turning=${turning} ...${asking} />
        <${Muted} borderTopWidth="1px" px="4" py="2">${textOf("line.how")}<//>
      <//>
    <//>`;
}

// Who has the right to work on what now, and until when unless it is renewed.
/** @param {{ leases: Api.LeaseLine[] }} props */
function Leases({ leases }) {
  const rows = leases
    .slice(0, MOST_LEASES)
    .map((one) => [
      html`<${Code} overflowWrap="anywhere" px="0" size="sm" variant="plain">${one.name}<//>`,
      html`<${Text} fontSize="sm" overflowWrap="anywhere">${one.holder}<//>`,
      one.epoch,
      bareClock(one.expires_at),
    ]);
  const left = leases.length - rows.length;
  const more = textOf("more", { more: plural(left, "more lease") });
  const names = [
    textOf("lease.of"),
    textOf("lease.holder"),
    term("epoch", textOf("column.epoch")),
    zoned(textOf("lease.ends")),
  ];
  return html`
    <${Card} data-testid="leases" note=${textOf("lease.note")} title=${term("lease", textOf("lease.title"))}>
      ${
        rows.length > 0
          ? html`<${Columns} names=${names} rows=${rows} />`
          : html`<${Muted} fontSize="sm" pb="4" px="4">${textOf("lease.none")}<//>`
      }
      ${left > 0 && html`<${Muted} fontSize="sm" px="4" py="3">${more}<//>`}
    <//>`;
}

const None = () => html`
  <${Headline} data-testid="none" palette="gray">
    <${Text} fontWeight="semibold" mb="1">${textOf("first.none")}<//>
    <${Steps} lines=${[textOf("first.init"), textOf("first.dags"), textOf("first.run")]} />
  <//>`;

/** @param {Api.Overview} all */
const hurries = (all) => all.pipelines.some((row) => row.active > 0);

// What was there stays until the answer to another question comes.
/** @param {Said} asked */
function useOverview(asked) {
  const key = JSON.stringify(asked);
  const ask = (/** @type {import("../api.js").Tag} */ known) => fetchOverview({ ...asked, limit: `${PAGE}` }, known);
  const { found, ...rest } = usePolled(key, ask, hurries);
  const last = useRef(/** @type {Api.Overview | null} */ (null));
  if (found !== null) last.current = found;
  return { all: last.current, turning: found === null, ...rest };
}

function OverviewPage() {
  useAirflowChoices();
  const name = textOf("page.overview");
  const [asked, say] = useUrlState(ASKED);
  const { all, problem, turning, load, hurry } = useOverview(asked);
  const names = (all?.pipelines ?? []).map((row) => row.name);
  const sizes = useSeldom("", fetchSizes, (one) => !one.counted);
  const stale = useSeldom(
    names.join(" "),
    () => fetchStaleOverview(names),
    (one) => !one.planned,
  );
  if (all === null)
    return html`<${Nothing} name=${name} problem=${problem} title=${textOf("page.unshown.overview")} />`;
  const started = () => {
    hurry();
    load();
  };
  return html`
    <${Page} data-testid="stagehold-overview" name=${name} problem=${problem}>
      <${Heading} as="h2" size="lg">${name}<//>
      ${
        all.total > 0
          ? html`
              <${All} all=${all} asked=${asked} onStarted=${started} say=${say} sizes=${sizes} stale=${stale}
                turning=${turning} />`
          : html`<${None} />`
      }
      <${Leases} leases=${all.leases} />
      <${Flex} align="start" gap="4" wrap="wrap">
        <${Storage} sizes=${sizes} />
        <${Versions} versions=${all.versions} />
      <//>
    <//>`;
}

globalThis.AirflowPlugin = OverviewPage;
