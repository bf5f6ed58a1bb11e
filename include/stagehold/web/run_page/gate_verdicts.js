// @ts-check
// What the gates said: for each stage expectations by partitions, and on a click what was seen.

import { docsUrl, fetchGates, fetchHistory, makeDocs } from "../api.js";
import { ObservedChart } from "../chart.js";
import { clock, OUTCOMES, plural } from "../formats.js";
import { number } from "../numbers.js";
import { useAnswer } from "../server_hooks.js";
import { textOf } from "../texts.js";
import {
  Card,
  CodeBlock,
  Columns,
  Expectation,
  html,
  Loading,
  Muted,
  Pressable,
  Problem,
  SmallButton,
  Tag,
  term,
} from "../ui.js";
import { has, ranges, WHOLE, waiverText } from "./run_texts.js";

const { useState } = globalThis.React;
const { Badge, Box, Flex, Text } = globalThis.ChakraUI;

const MOST_SQUARES = 48; // partitions; more are drawn as a strip
const UNKNOWN = { mark: "", palette: "gray" };

/** @typedef {{ stage: Api.StageVerdicts, one: Api.ExpectationVerdicts }} Verdicts of one expectation for a stage */

/** @param {Api.OutcomeGroup} group */
const countText = ({ outcome, count }) => `${number(count)} ${OUTCOMES[outcome].text}`;

/** @param {Verdicts & { partition: number }} props */
function Square({ stage, one, partition }) {
  const outcome = one.outcomes.find(({ partitions }) => has(partitions, partition) || has(partitions, WHOLE))?.outcome;
  const { mark, palette } = outcome ? OUTCOMES[outcome] : UNKNOWN;
  const text = outcome ? OUTCOMES[outcome].text : textOf("verdict.unknown");
  const passed = outcome === "passed";
  return html`
    <${Box} bg=${outcome ? `${palette}.${passed ? "subtle" : "solid"}` : "transparent"} borderRadius="2px"
      borderStyle="dashed" borderWidth=${outcome ? 0 : "1px"} boxSize="14px"
      color="${palette}.${passed ? "fg" : "contrast"}" data-outcome=${outcome} flexShrink="0" fontSize="10px"
      fontWeight="bold" lineHeight="14px" textAlign="center" title="${stage.stage}[${partition}]: ${text}">
      ${mark}
    <//>`;
}

/** @param {Verdicts} props */
const Squares = ({ stage, one }) => html`
  <${Flex} aria-hidden gap="2px">
    ${Array.from(
      { length: stage.partitions },
      (_, partition) => html`<${Square} key=${partition} one=${one} partition=${partition} stage=${stage} />`,
    )}
  <//>`;

/** @param {{ stage: Api.StageVerdicts, range: [number, number], outcome: Api.Outcome }} props */
function Part({ stage, range: [first, last], outcome }) {
  const { palette, text } = OUTCOMES[outcome];
  const passed = outcome === "passed";
  const share = (/** @type {number} */ count) => `${(100 * count) / stage.partitions}%`;
  return html`
    <${Box} bg="${palette}.solid" data-outcome=${outcome} h="full" minW=${passed ? undefined : "2px"}
      opacity=${passed ? 0.35 : 1} position="absolute" style=${{ left: share(first), width: share(last - first + 1) }}
      title="${stage.stage}[${ranges([[first, last]])}]: ${text}" zIndex=${passed ? 0 : 1} />`;
}

/** @param {Verdicts} props */
function Strip({ stage, one }) {
  /** @type {(range: [number, number]) => [number, number]} */
  const places = (range) => (range[0] === WHOLE ? [0, stage.partitions - 1] : range);
  const parts = one.outcomes.flatMap(({ partitions, outcome }) =>
    partitions.map((range) => ({ range: places(range), outcome })),
  );
  return html`
    <${Box} bg="bg.emphasized" borderRadius="2px" h="14px" minW="240px" overflow="hidden" position="relative">
      ${parts.map((part) => html`<${Part} key=${part.range[0]} stage=${stage} ...${part} />`)}
    <//>`;
}

// Not judged yet, or published by an attempt that was killed before it could record what was said.
/** @param {Verdicts} verdicts */
const unknownIn = ({ stage, one }) =>
  one.outcomes.some((group) => has(group.partitions, WHOLE)) ? 0 : stage.partitions - one.judged;

/** @param {Verdicts} props */
function Counts({ stage, one }) {
  const unknown = unknownIn({ stage, one });
  return html`
    <${Flex} gap="1.5" wrap="wrap">
      ${one.outcomes.map((group) => {
        const { mark, palette } = OUTCOMES[group.outcome];
        return html`<${Tag} key=${group.outcome} palette=${palette}>${mark} ${countText(group)}<//>`;
      })}
      ${unknown > 0 && html`<${Badge} variant="outline">${textOf("verdict.unknowns", { unknown })}<//>`}
    <//>`;
}

/** @param {{ rows: Record<string, string>[] }} props */
const SampleRows = ({ rows }) => html`
  <${Box} bg="bg" borderRadius="sm" borderWidth="1px" data-testid="sample-rows" mt="1">
    <${Columns} names=${Object.keys(rows[0])} rows=${rows.map((row) => Object.values(row))} />
  <//>`;

/** @param {{ stage: string, sample: Api.SeenSample }} props */
const Sample = ({ stage, sample }) => html`
  <${Box} mt="1">
    <${Text}>
      ${stage}[${ranges([[sample.partition, sample.partition]])}]:${" "}
      ${textOf("verdict.got", { observed: sample.observed })}
    <//>
    ${
      (sample.rows ?? []).length > 0
        ? html`<${SampleRows} rows=${sample.rows ?? []} />`
        : sample.values.length > 0 && html`<${CodeBlock}>${sample.values.join("\n")}<//>`
    }
  <//>`;

/** @param {{ stage: string, group: Api.OutcomeGroup }} props */
function Samples({ stage, group }) {
  const left = group.count - group.samples.length;
  return html`
    <${Box} data-testid="samples" mb="2">
      <${Text} fontWeight="semibold">${OUTCOMES[group.outcome].text}: ${stage}[${ranges(group.partitions)}]<//>
      ${group.samples.map((sample) => html`<${Sample} key=${sample.partition} sample=${sample} stage=${stage} />`)}
      ${
        left > 0 &&
        html`<${Text} color="fg.muted">${textOf("verdict.more", { more: plural(left, "more partition") })}<//>`
      }
    <//>`;
}

/** @param {Verdicts & { grid: Api.RunGrid }} props */
function History({ grid, stage, one }) {
  const ask = () => fetchHistory(grid.place, grid.run_id, stage.stage, one.expectation);
  const { found, problem } = useAnswer(`${one.judged_at} ${one.judged}`, ask);
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found) return html`<${Loading} size="sm" />`;
  if (found.points.length === 0) return null;
  return html`
    <${Box}>
      <${Text} color="fg.muted">${textOf("verdict.observed")}<//>
      <${ObservedChart} points=${found.points} />
    <//>`;
}

/** @param {Verdicts & { grid: Api.RunGrid }} props */
const Seen = ({ grid, stage, one }) => html`
  <${Box} bg="bg.subtle" data-testid="seen" fontSize="sm" px="4" py="3">
    <${Text} color="fg.muted" mb="2">${textOf("verdict.judged", { at: clock(one.judged_at), gate: one.suite })}<//>
    ${one.outcomes
      .filter((group) => group.samples.length > 0)
      .map((group) => html`<${Samples} group=${group} key=${group.outcome} stage=${stage.stage} />`)}
    ${one.numeric && html`<${History} grid=${grid} one=${one} stage=${stage} />`}
  <//>`;

// Who waived what, why and until when: as long as the data is there that it was said of.
/** @param {{ stage: string, words: Api.WordTold[] }} props */
const Words = ({ stage, words }) =>
  words.map(
    ({ waiver, holds, partitions }) => html`
      <${Text} color=${holds ? undefined : "fg.muted"} data-holds=${holds} data-testid="word" fontSize="sm"
        key="${waiver.recorded_at} ${ranges(partitions)} ${holds}" pb="1" px="4">
        ${stage}[${ranges(partitions)}]: ${waiverText(waiver)}
        ${!holds && waiver.until !== waiver.recorded_at && textOf("verdict.over")}
      <//>`,
  );

/** @param {Verdicts & { grid: Api.RunGrid, chosen: boolean, onChoose: () => void }} props */
const Line = ({ grid, stage, one, chosen, onChoose }) => html`
  <${Box} borderTopWidth="1px" data-testid="verdicts">
    <${Flex} align="center" aria-expanded=${chosen} as="button" columnGap="4" cursor="pointer" onClick=${onChoose}
      px="4" py="2" rowGap="1"
      textAlign="start" type="button" w="full" wrap="wrap" _hover=${{ bg: "bg.subtle" }}>
      <${Expectation} flex="1 1 300px" one=${one} />
      <${Box} flex="1 1 260px">
        <${stage.partitions > MOST_SQUARES ? Strip : Squares} one=${one} stage=${stage} />
      <//>
      <${Box} flex="1 1 180px"><${Counts} one=${one} stage=${stage} /><//>
    <//>
    <${Words} stage=${stage.stage} words=${one.words ?? []} />
    ${chosen && html`<${Seen} grid=${grid} one=${one} stage=${stage} />`}
  <//>`;

/** @param {{ grid: Api.RunGrid, stage: Api.StageVerdicts }} props */
function Stage({ grid, stage }) {
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  /** @param {string} key */
  const toggle = (key) => setChosen(chosen === key ? null : key);
  return html`
    <${Box} data-testid="gate-${stage.stage}" mb="2">
      <${Text} fontWeight="semibold" px="4" py="2">
        ${textOf("verdict.stage", { gate: stage.gate, stage: stage.stage })}
      <//>
      ${stage.expectations.length === 0 && html`<${Muted} fontSize="sm" px="4" py="2">${textOf("verdict.none")}<//>`}
      ${stage.expectations.map((one) => {
        const key = `${one.suite} ${one.expectation}`;
        return html`
          <${Line} chosen=${chosen === key} grid=${grid} key=${key} onChoose=${() => toggle(key)} one=${one}
            stage=${stage} />`;
      })}
    <//>`;
}

// Data Docs, as Great Expectations makes them: to be read, and to be made by who may change the run.
/** @param {{ grid: Api.RunGrid, found: Api.RunVerdicts }} props */
function Docs({ grid, found }) {
  const [made, setMade] = useState(/** @type {number | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const make = async () => {
    setBusy(true);
    setProblem(null);
    await makeDocs(grid.place, grid.run_id).then(({ pages }) => setMade(pages), setProblem);
    setBusy(false);
  };
  const there = found.docs || made !== null;
  const judged = found.stages.some((stage) => stage.expectations.length > 0);
  return html`
    <${Box} data-testid="docs" fontSize="sm" px="4" py="3">
      <${Flex} align="center" columnGap="4" rowGap="2" wrap="wrap">
        ${
          there &&
          html`
            <${Box} as="a" color="fg.info" href=${docsUrl(grid.place, grid.run_id)} rel="noopener" target="_blank"
              textDecoration="underline">
              ${textOf("verdict.docs")}
            <//>`
        }
        ${
          grid.may_change && judged
            ? html`
              <${SmallButton} loading=${busy} onClick=${make}>
                ${there ? textOf("docs.anew") : textOf("docs.make")}
              <//>`
            : !there && html`<${Muted}>${textOf("verdict.no_docs")}<//>`
        }
        ${
          made !== null &&
          !busy &&
          html`<${Muted} role="status">${textOf("docs.made", { pages: plural(made, "page") })}<//>`
        }
      <//>
      ${problem && html`<${Text} color="failed.fg" mt="2" role="alert">${problem.message}<//>`}
    <//>`;
}

// What they said changes with the run; while it goes on, they are asked again when something new is not met.
/** @param {Api.RunGrid} grid */
function stampOf(grid) {
  const unmet = grid.gate_failures.map((one) => `${one.stage} ${one.standing} ${ranges(one.partitions)}`);
  return [grid.run_id, grid.state, grid.unmet, grid.active ? "" : grid.consumable, ...unmet].join("|");
}

/** @param {{ grid: Api.RunGrid }} props */
export function Gates({ grid }) {
  const [choice, setChoice] = useState(/** @type {boolean | null} */ (null));
  const gated = grid.stages.filter((stage) => stage.gate);
  const open = choice ?? grid.unmet > 0;
  const { found, problem } = useAnswer(open ? stampOf(grid) : null, () => fetchGates(grid.place, grid.run_id));
  if (gated.length === 0) return null;
  const note = grid.unmet
    ? textOf("verdict.unmet", { gates: plural(gated.length, "gate"), verdicts: plural(grid.unmet, "verdict") })
    : textOf("verdict.met");
  const toggle = html`
    <${Pressable} aria-expanded=${open} color="fg.muted" data-testid="gates-toggle" fontSize="sm"
      onClick=${() => setChoice(!open)}>
      ${open ? textOf("button.hide") : textOf("button.show")}
    <//>`;
  return html`
    <${Card} action=${toggle} data-testid="gates" note=${note} title=${term("gate", textOf("verdict.title"))}>
      ${open && problem && html`<${Problem} problem=${problem} />`}
      ${open && !found && !problem && html`<${Flex} justify="center" p="4"><${Loading} /><//>`}
      ${open && found?.stages.map((stage) => html`<${Stage} grid=${grid} key=${stage.stage} stage=${stage} />`)}
      ${open && found && html`<${Docs} grid=${grid} found=${found} />`}
    <//>`;
}
