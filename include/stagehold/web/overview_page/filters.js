// @ts-check
// Which pipelines are looked for, by name, tag and owner, and which come first.

import { Field, html, onTyped, Select, SmallButton } from "../ui.js";
import { ORDERS } from "./overview_texts.js";

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
    <${Field} label="Name">
      <${Input} data-testid="search" onChange=${onTyped(setTyped)} size="sm" type="search" value=${typed} />
    <//>`;
}

/** @param {Asking & { all: Api.Overview }} props */
export function Filters({ all: { tags, owners, me }, asked, say }) {
  /** @type {(name: string) => (value: string) => void} */
  const choose = (name) => (value) => say({ [name]: value, offset: "" });
  const any = [["", "any"]];
  const people = owners.map((one) => [one, one === me ? `me (${one})` : one]);
  const chosen = ["search", "kind", "tag", "owner"].some((name) => asked[name]);
  return html`
    <${Flex} align="end" columnGap="4" data-testid="filters" pb="3" px="4" rowGap="2" wrap="wrap">
      <${Search} asked=${asked} say=${say} />
      ${
        tags.length > 0 &&
        html`
          <${Select} label="Tag" onChange=${choose("tag")} options=${any.concat(tags.map((one) => [one, one]))}
            value=${asked.tag ?? ""} />`
      }
      <${Select} label="Owner" onChange=${choose("owner")} options=${any.concat(people)} value=${asked.owner ?? ""} />
      <${Select} label="First" onChange=${(/** @type {string} */ order) => say({ order, offset: "" })}
        options=${Object.entries(ORDERS)} value=${asked.order ?? "state"} />
      ${
        chosen &&
        html`
          <${SmallButton} onClick=${() => say({ search: "", kind: "", tag: "", owner: "", offset: "" })}>
            Show all
          <//>`
      }
    <//>`;
}
