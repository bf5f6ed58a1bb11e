// @ts-check
// Which pipelines are looked for, by name, tag and owner, and which come first.

import { textOf } from "../texts.js";
import { Field, html, onTyped, Select, SmallButton } from "../ui.js";
import { orders } from "./overview_texts.js";

const { useEffect, useState } = globalThis.React;
const { Flex, Input } = globalThis.ChakraUI;

const PAUSE_MILLISECONDS = 300; // that nothing is typed for, before it is asked

/** @typedef {{ asked: import("../url_state.js").Said, say: import("../url_state.js").Say }} Asking */

/** @param {Asking} props */
function Search({ asked, say }) {
  const said = asked.search ?? "";
  const [typed, setTyped] = useState(said);
  useEffect(() => setTyped(said), [said]);
  useEffect(() => {
    if (typed === said) return;
    const timer = setTimeout(() => say({ search: typed, offset: "" }, { replace: true }), PAUSE_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`
    <${Field} label=${textOf("filter.name")}>
      <${Input} data-testid="search" onChange=${onTyped(setTyped)} size="sm" type="search" value=${typed} />
    <//>`;
}

/** @param {Asking & { all: Api.Overview }} props */
export function Filters({ all: { tags, owners, me }, asked, say }) {
  /** @type {(name: string) => (value: string) => void} */
  const choose = (name) => (value) => say({ [name]: value, offset: "" });
  const any = [["", textOf("filter.any")]];
  const people = owners.map((one) => [one, one === me ? textOf("filter.me", { name: one }) : one]);
  const chosen = ["search", "kind", "tag", "owner"].some((name) => asked[name]);
  return html`
    <${Flex} align="end" columnGap="4" data-testid="filters" pb="3" px="4" rowGap="2" wrap="wrap">
      <${Search} asked=${asked} say=${say} />
      ${
        tags.length > 0 &&
        html`
          <${Select} label=${textOf("filter.tag")} onChange=${choose("tag")}
            options=${any.concat(tags.map((one) => [one, one]))} value=${asked.tag ?? ""} />`
      }
      <${Select} label=${textOf("filter.owner")} onChange=${choose("owner")} options=${any.concat(people)}
        value=${asked.owner ?? ""} />
      <${Select} label=${textOf("filter.first")} onChange=${(/** @type {string} */ order) => say({ order, offset: "" })}
        options=${orders()} value=${asked.order ?? "state"} />
      ${
        chosen &&
        html`
          <${SmallButton} onClick=${() => say({ search: "", kind: "", tag: "", owner: "", offset: "" })}>
            ${textOf("filter.all")}
          <//>`
      }
    <//>`;
}
