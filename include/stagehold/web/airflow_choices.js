// @ts-check
// The time zone and the language that were chosen in Airflow, whose UI keeps both in the browser.

const { useEffect, useState } = globalThis.React;

const ZONE = "timezone"; // as JSON
const LANGUAGE = "i18nextLng";
const LOOK_MILLISECONDS = 1000; // a change is told to nobody outside Airflow's own components

const kept = () => `${localStorage.getItem(ZONE)} ${localStorage.getItem(LANGUAGE)}`;

// What is made of facts, made once for the same: a page tells hundreds of numbers and moments.
/**
 * @template T
 * @param {(...facts: string[]) => T} make
 */
export function once(make) {
  /** @type {Map<string, T>} */
  const known = new Map();
  return (/** @type {string[]} */ ...facts) => {
    const key = facts.join(" ");
    const there = known.get(key) ?? make(...facts);
    known.set(key, there);
    return there;
  };
}

// Of nothing, or of what is no zone, it is the browser's, as in Airflow.
const zoneOf = once((raw) => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: JSON.parse(raw) }).resolvedOptions().timeZone;
  } catch {
    return new Intl.DateTimeFormat("en").resolvedOptions().timeZone;
  }
});

const languageOf = once((raw) => {
  try {
    return Intl.getCanonicalLocales(raw)[0];
  } catch {
    return "en";
  }
});

export const chosenZone = () => zoneOf(localStorage.getItem(ZONE) ?? "");

export const chosenLanguage = () => languageOf(localStorage.getItem(LANGUAGE) ?? navigator.language);

// Draws the page anew when one of them has changed.
export function useAirflowChoices() {
  const [, setSeen] = useState(kept);
  useEffect(() => {
    const timer = setInterval(() => setSeen(kept), LOOK_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
}
