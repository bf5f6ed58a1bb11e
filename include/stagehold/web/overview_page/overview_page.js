// @ts-check
// The page of all pipelines in Airflow's menu, loaded by its UI as a React app. Plain modules, no build step, as
// run_page.js.

import { fetchOverview, fetchSizes, fetchStaleOverview } from "../api.js";
import { clock, plural } from "../formats.js";
import { useAnswer, usePolled } from "../server_hooks.js";
import { Card, Columns, html, Muted, Nothing, Page, Pressable } from "../ui.js";
import { IN_ORDER, STANDINGS } from "./overview_texts.js";
import { PipelineLines } from "./pipeline_lines.js";
import { Storage, Versions } from "./storage.js";

const { useEffect, useState } = globalThis.React;
const { Box, Code, Flex, Grid, Heading, Stack, Text } = globalThis.ChakraUI;

const SELDOM_SECONDS = 60;
const SOON_SECONDS = 3;
const MOST_LEASES = 20;
const HOW =
  "State and marks are said from ledger and schedule alone. Stale is what would come out differently now, as code, " +
  "sources or suites have changed since; that is worked out apart, and may be some minutes old.";
const NONE =
  "There is no pipeline that you may see. A pipeline is a YAML file in the project's include/pipelines; " +
  "`stagehold init` makes a project.";

// Asked for apart and seldom, as it takes long to work out; soon again while that is `underWay`, and after the first
// time, when the answer may be as old as the last look at this page.
/**
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(found: T) => boolean} underWay
 */
function useSeldom(ask, underWay) {
  const [turn, setTurn] = useState(0);
  const { found } = useAnswer(turn, ask);
  useEffect(() => {
    const seconds = turn === 0 || (found && underWay(found)) ? SOON_SECONDS : SELDOM_SECONDS;
    const timer = setTimeout(() => setTurn(turn + 1), seconds * 1000);
    return () => clearTimeout(timer);
  }, [turn, found]);
  return found;
}

/** @typedef {Api.PipelineStanding | null} Chosen which pipelines alone are shown; null is all */

// How many pipelines stand so; a press shows only those.
/** @param {{ standing: Api.PipelineStanding, count: number, chosen: Chosen, onChoose: (now: Chosen) => void }} props */
function Tile({ standing, count, chosen, onChoose }) {
  const { name, mark, palette } = STANDINGS[standing];
  const pressed = chosen === standing;
  const edge = count ? { borderTopColor: `${palette}.solid` } : {};
  const looks = count
    ? { cursor: "pointer", opacity: 1, _hover: { bg: "bg.subtle" } }
    : { cursor: "default", opacity: 0.55 };
  return html`
    <${Pressable} aria-pressed=${pressed} bg=${pressed ? "bg.emphasized" : "bg"} borderRadius="lg" borderWidth="1px"
      css=${{ "&&": { ...edge, borderTopWidth: "3px" } }} data-testid="tile-${name}" disabled=${count === 0}
      onClick=${() => onChoose(pressed ? null : standing)} px="2.5" py="3" textAlign="start" ...${looks}>
      <${Text} fontSize="2xl" fontWeight="semibold" lineHeight="1.1">${count.toLocaleString()}<//>
      <${Text} color=${count ? `${palette}.fg` : "fg.muted"} fontSize="sm" whiteSpace="nowrap">${mark} ${name}<//>
    <//>`;
}

/** @param {{ rows: Api.PipelineRow[], chosen: Chosen, onChoose: (now: Chosen) => void }} props */
const Tiles = ({ rows, ...choosing }) => html`
  <${Grid} gap="2" templateColumns="repeat(auto-fit, minmax(104px, 1fr))">
    ${IN_ORDER.map((standing) => ({ standing, count: rows.filter((row) => row.standing === standing).length }))
      .filter(({ standing, count }) => count > 0 || standing !== "hidden")
      .map((tile) => html`<${Tile} key=${tile.standing} ...${tile} ...${choosing} />`)}
  <//>`;

/** @param {Api.PipelineRow[]} rows */
const worstFirst = (rows) =>
  rows.toSorted((one, other) => IN_ORDER.indexOf(one.standing) - IN_ORDER.indexOf(other.standing));

/** @param {import("./pipeline_lines.js").Pipelines & { looked: Api.Looked }} props */
function All({ rows, ...rest }) {
  const [chosen, setChosen] = useState(/** @type {Chosen} */ (null));
  const shown = worstFirst(chosen ? rows.filter((row) => row.standing === chosen) : rows);
  const note = chosen
    ? `${STANDINGS[chosen].name}: ${shown.length} of ${rows.length}`
    : plural(rows.length, "pipeline");
  return html`
    <${Stack} gap="4">
      <${Tiles} chosen=${chosen} onChoose=${setChosen} rows=${rows} />
      <${Card} data-testid="pipelines" note=${note} title="Pipelines">
        <${PipelineLines} rows=${shown} ...${rest} />
        <${Muted} borderTopWidth="1px" px="4" py="2">${HOW}<//>
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
      clock(one.expires_at),
    ]);
  const left = leases.length - rows.length;
  const names = ["Of", "Holder", "Epoch", "Ends, unless renewed"];
  return html`
    <${Card} data-testid="leases" note="who works on what now" title="Leases">
      ${
        rows.length > 0
          ? html`<${Columns} names=${names} rows=${rows} />`
          : html`<${Muted} fontSize="sm" pb="4" px="4">Nobody works on anything now.<//>`
      }
      ${left > 0 && html`<${Muted} fontSize="sm" px="4" py="3">and ${plural(left, "more lease")}<//>`}
    <//>`;
}

/** @param {Api.Overview} all */
const hurries = (all) => all.pipelines.some((row) => row.active > 0);

function OverviewPage() {
  const { found, problem } = usePolled("overview", fetchOverview, hurries);
  const sizes = useSeldom(fetchSizes, (one) => !one.counted);
  const stale = useSeldom(fetchStaleOverview, (one) => !one.planned);
  if (found === null) return html`<${Nothing} problem=${problem} title="The pipelines cannot be shown" />`;
  const { pipelines, looked, leases, versions } = found;
  return html`
    <${Page} data-testid="stagehold-overview" problem=${problem}>
      <${Heading} as="h2" size="lg">Stagehold pipelines<//>
      ${
        pipelines.length > 0
          ? html`<${All} looked=${looked} rows=${pipelines} sizes=${sizes} stale=${stale} />`
          : html`<${Box} data-testid="none" maxW="720px"><${Text}>${NONE}<//><//>`
      }
      <${Leases} leases=${leases} />
      <${Flex} align="start" gap="4" wrap="wrap">
        <${Storage} sizes=${sizes} />
        <${Versions} versions=${versions} />
      <//>
    <//>`;
}

globalThis.AirflowPlugin = OverviewPage;
