// @ts-check
// Which intervals the tab shows, and how many of those that somebody has to look at are on no page that is shown.

import { plural } from "../formats.js";
import { number } from "../numbers.js";
import { textOf } from "../texts.js";
import { Field, html, Muted, onTyped, Panel, Pressable, SmallButton } from "../ui.js";

const { Flex, Input } = globalThis.ChakraUI;

/** @type {Api.IntervalLook[]} */
const LOOKS_IN_ORDER = ["all", "failed", "needed"];

/** @typedef {{ asked: import("../url_state.js").Said, say: import("../url_state.js").Say }} Asking */

// What is on other pages, so that a page without failures does not look as if there were none.
/** @param {Api.IntervalPage} page */
function elsewhere({ intervals, looks }) {
  /** @param {Api.IntervalLook} look */
  const rest = (look) => (looks[look] ?? 0) - intervals.filter((row) => row.looks.includes(look)).length;
  const [all, failed, needed] = LOOKS_IN_ORDER.map(rest);
  if (all === 0) return textOf("elsewhere.none");
  return textOf("elsewhere.some", { count: needed, failed, intervals: plural(all, "interval") });
}

/** @param {Asking & { look: Api.IntervalLook, count: number }} props */
function Choice({ look, count, asked, say }) {
  const pressed = (asked.look ?? "all") === look;
  return html`
    <${Pressable} aria-pressed=${pressed} bg=${pressed ? "bg.emphasized" : "bg"} borderRadius="md" borderWidth="1px"
      data-testid="look-${look}" fontSize="sm" onClick=${() => say({ look: look === "all" ? "" : look })} px="2.5"
      py="1.5">
      ${textOf(`look.${look}`)} ${number(count)}
    <//>`;
}

/** @param {Asking & { label: string, name: string }} props */
const Day = ({ label, name, asked, say }) => html`
  <${Field} label=${label}>
    <${Input} data-testid="range-${name}" onChange=${onTyped((day) => say({ [name]: day }))} size="sm" type="date"
      value=${asked[name] ?? ""} />
  <//>`;

/** @param {Asking & { page: Api.IntervalPage }} props */
export function IntervalFilters({ page, ...asking }) {
  const { asked, say } = asking;
  if (page.total === 0) return null;
  return html`
    <${Panel} data-testid="interval-filters" px="4" py="3">
      <${Flex} align="end" columnGap="4" rowGap="2" wrap="wrap">
        <${Flex} gap="1.5" role="group" aria-label=${textOf("look.label")}>
          ${LOOKS_IN_ORDER.map(
            (look) => html`<${Choice} count=${page.looks[look] ?? 0} key=${look} look=${look} ...${asking} />`,
          )}
        <//>
        <${Day} label=${textOf("range.from")} name="first" ...${asking} />
        <${Day} label=${textOf("range.to")} name="last" ...${asking} />
        ${
          Object.keys(asked).length > 0 &&
          html`<${SmallButton} onClick=${() => say({ look: "", first: "", last: "" })}>${textOf("filter.all")}<//>`
        }
      <//>
      <${Muted} data-testid="elsewhere" mt="2">${elsewhere(page)}<//>
    <//>`;
}
