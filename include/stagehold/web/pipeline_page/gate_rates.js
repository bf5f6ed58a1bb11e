// @ts-check
// How often each expectation was met over the last intervals: a small bar for each interval.

import { fetchGateRates } from "../api.js";
import { OUTCOMES, plural } from "../formats.js";
import { number } from "../numbers.js";
import { usePolled } from "../server_hooks.js";
import { textOf } from "../texts.js";
import { Card, Expectation, html, Problem, Tag, term, tooltip } from "../ui.js";

const { Box, Flex, Text } = globalThis.ChakraUI;

/** @type {Api.Outcome[]} */
const ORDER = ["failed", "waived", "warning", "info", "passed"]; // from the top of a bar
const HEIGHT = 32;

/**
 * @param {Api.IntervalRate} rate
 * @returns {{ outcome: Api.Outcome, count: number }[]}
 */
const countsOf = ({ counts }) =>
  ORDER.map((outcome) => ({ outcome, count: counts[outcome] ?? 0 })).filter(({ count }) => count > 0);

/** @param {Api.IntervalRate} rate */
const total = (rate) => countsOf(rate).reduce((sum, { count }) => sum + count, 0);

/** @param {Api.IntervalRate} rate */
function rateText(rate) {
  const told = countsOf(rate).map(({ outcome, count }) => `${number(count)} ${OUTCOMES[outcome].text}`);
  return `${rate.interval}: ${told.join(", ")}`;
}

// Rounded so that "all" is said of all alone.
/**
 * @param {number} part
 * @param {number} whole
 */
function percent(part, whole) {
  if (part === whole) return "100 %";
  return part === 0 ? "0 %" : `${Math.min(99, Math.max(1, Math.round((100 * part) / whole)))} %`;
}

/** @param {{ rate: Api.IntervalRate | undefined }} props */
function Bar({ rate }) {
  if (!rate) return html`<${Box} borderBottomWidth="1px" flex="1 1 0" h="${HEIGHT}px" maxW="16px" />`;
  const whole = total(rate);
  return html`
    <${Flex} ...${tooltip(rateText(rate))} borderRadius="2px" direction="column" flex="1 1 0" h="${HEIGHT}px"
      maxW="16px" overflow="hidden" role="img">
      ${countsOf(rate).map(
        ({ outcome, count }) => html`
          <${Box} bg=${outcome === "passed" ? "success.emphasized" : `${OUTCOMES[outcome].palette}.solid`}
            data-outcome=${outcome} flexGrow=${count / whole} key=${outcome} minH="3px"
            opacity=${outcome === "waived" ? 0.6 : 1} />`,
      )}
    <//>`;
}

/** @param {{ rate: Api.IntervalRate }} props */
function Shares({ rate }) {
  const whole = total(rate);
  return html`
    <${Box} flex="0 1 190px" minW="130px">
      <${Text} fontWeight="semibold">${percent(rate.counts.passed ?? 0, whole)} ${OUTCOMES.passed.text}<//>
      <${Flex} gap="1" wrap="wrap">
        ${countsOf(rate)
          .filter(({ outcome }) => outcome !== "passed")
          .map(({ outcome, count }) => {
            const { mark, palette, text } = OUTCOMES[outcome];
            const share = percent(count, whole);
            return html`<${Tag} key=${outcome} palette=${palette} size="xs">${mark} ${share} ${text}<//>`;
          })}
      <//>
    <//>`;
}

/** @param {{ one: Api.ExpectationRates, intervals: string[] }} props */
function Line({ one, intervals }) {
  const byInterval = new Map(one.rates.map((rate) => [rate.interval, rate]));
  return html`
    <${Flex} align="center" borderTopWidth="1px" columnGap="4" data-testid="rates" px="4" py="2" rowGap="1" wrap="wrap">
      <${Expectation} flex="1 1 210px" one=${one} />
      <${Flex} flex="1 1 150px" gap="2px" maxW="260px">
        ${intervals.map((interval) => html`<${Bar} key=${interval} rate=${byInterval.get(interval)} />`)}
      <//>
      <${Shares} rate=${one.rates.at(-1)} />
    <//>`;
}

/** @param {{ stage: Api.StageRates, intervals: string[] }} props */
const Stage = ({ stage, intervals }) => html`
  <${Box} data-testid="rates-${stage.stage}">
    <${Text} fontSize="sm" fontWeight="semibold" px="4" py="2">
      ${stage.stage}
      <${Text} as="span" color="fg.muted" fontWeight="normal">
        ${stage.gate ? textOf("rates.gate", { gate: stage.gate }) : textOf("rates.no_gate")}
      <//>
    <//>
    ${stage.expectations.map(
      (one) => html`<${Line} intervals=${intervals} key="${one.suite} ${one.expectation}" one=${one} />`,
    )}
  <//>`;

/** @param {{ place: string }} props */
export function GateRates({ place }) {
  const { found, problem } = usePolled(
    place,
    (known) => fetchGateRates(place, known),
    () => false,
  );
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!found || found.stages.length === 0) return null;
  const rates = found.stages.flatMap((stage) => stage.expectations.flatMap((one) => one.rates));
  const judged = found.intervals.filter((interval) => rates.some((rate) => rate.interval === interval));
  return html`
    <${Card} data-testid="gate-rates" title=${term("gate", textOf("rates.title"))}
      note=${textOf("rates.note", { intervals: plural(judged.length, "interval") })}>
      ${found.stages.map((stage) => html`<${Stage} intervals=${judged} key=${stage.stage} stage=${stage} />`)}
    <//>`;
}
