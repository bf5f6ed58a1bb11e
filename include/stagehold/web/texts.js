// @ts-check
// What the pages say, in the language that was chosen in Airflow. Texts are in a file for each language.

import { chosenLanguage, once } from "./airflow_choices.js";
import { number } from "./numbers.js";
import { DE } from "./texts/de.js";
import { EN } from "./texts/en.js";

const { createElement, Fragment } = globalThis.React;

/** @typedef {keyof typeof EN} Key of a text */

/**
 * @template K
 * @typedef {K extends `term.${infer Word}` ? Word : never} TermOf a key
 */

/** @typedef {TermOf<Key>} Term a word that has its sentence */

/**
 * @template K
 * @typedef {K extends `count.${infer Word}` ? Word : never} NounOf a key
 */

/** @typedef {NounOf<Key>} Noun of things that are counted */

/** @type {Record<string, Record<Key, string>>} */
const LANGUAGES = { de: DE, en: EN };

const formsOf = once((language) => new Intl.PluralRules(language));

// English, where there are no texts in what was chosen.
function spoken() {
  const [language] = chosenLanguage().split("-");
  return language in LANGUAGES ? language : "en";
}

/** @typedef {Record<string, Content>} Facts that texts name; of two forms their `count` decides */

/** @type {(key: Key, facts: Facts) => Content[]} */
function partsOf(key, facts) {
  const forms = LANGUAGES[spoken()][key].split("|");
  const several = forms.length > 1 && formsOf(spoken()).select(Number(facts.count)) !== "one";
  return forms[several ? 1 : 0].split(/\{(\w+)\}/).map((part, index) => {
    const fact = index % 2 ? facts[part] : part;
    return typeof fact === "number" ? number(fact) : fact;
  });
}

/** @type {(key: Key, facts?: Facts) => string} */
export const textOf = (key, facts = {}) => partsOf(key, facts).join("");

// Looks of things by name, with the text of each, which follows the language.
/**
 * @template {string} Name
 * @template {object} Look
 * @param {string} group of texts
 * @param {Record<Name, Look>} looks
 */
export function withTexts(group, looks) {
  for (const [name, look] of Object.entries(looks))
    Object.defineProperty(look, "text", { get: () => textOf(/** @type {Key} */ (`${group}.${name}`)) });
  return /** @type {Record<Name, Look & { text: string }>} */ (looks);
}

// What stands for the sentence of another word.
/** @type {Record<string, Term>} */
const SAME = { admitted: "waiver", lost: "heal", restored: "restore", waived: "waiver" };

// What a word of Stagehold's means; undefined for one that everybody knows.
/** @param {string} word */
export function meaningOf(word) {
  const key = `term.${SAME[word] ?? word}`;
  return key in EN ? textOf(/** @type {Key} */ (key)) : undefined;
}

// The same where facts may be elements.
/** @type {(key: Key, facts: Facts) => Content} */
export const contentOf = (key, facts) => createElement(Fragment, null, ...partsOf(key, facts));
