// @ts-check
// How all pages write numbers: in the language that was chosen in Airflow.

import { chosenLanguage, once } from "./airflow_choices.js";

const numbersOf = once((language, options) => new Intl.NumberFormat(language, JSON.parse(options)));

/** @type {(value: number, options?: Intl.NumberFormatOptions) => string} */
export const number = (value, options = {}) => numbersOf(chosenLanguage(), JSON.stringify(options)).format(value);

// With one digit behind the point, also where that is 0.
/** @param {number} value */
export const decimal = (value) => number(value, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
