// How the tabs ask the server: again and again what they show, and once what somebody wants to know.

const { startTransition, useCallback, useEffect, useRef, useState } = globalThis.React;

const BUSY_SECONDS = 1.5;
const IDLE_SECONDS = 10;
// After a button was pressed the scheduler takes a moment to show that something goes on.
const SETTLE_SECONDS = 20;

const lookedAt = ({ found, key }, at) => ({ found: found && { ...found, looked: { ...found.looked, at } }, key });

// Polls `fetch`, which is given the ETag of what is there; more often while what was `found` hurries. Asks anew, and
// forgets what was there, when `key` changes, which says all that the question depends on.
export function usePolled(key, fetch, hurries) {
  const [answer, setAnswer] = useState({ found: null, key });
  const [problem, setProblem] = useState(null);
  const [eagerUntil, setEagerUntil] = useState(0);
  const tag = useRef(null);
  const wanted = useRef(key);
  wanted.current = key;
  const found = answer.key === key ? answer.found : null;
  const load = useCallback(
    () =>
      fetch(tag.current?.key === key ? tag.current.tag : null).then((fresh) => {
        if (wanted.current !== key) return;
        if (fresh.found) {
          tag.current = { key, tag: fresh.tag };
          startTransition(() => setAnswer({ found: fresh.found, key }));
        } else if (fresh.lookedAt) startTransition(() => setAnswer((before) => lookedAt(before, fresh.lookedAt)));
        setProblem(null);
      }, setProblem),
    [key],
  );
  const hurry = useCallback(() => setEagerUntil(Date.now() + SETTLE_SECONDS * 1000), []);
  const busy = found !== null && hurries(found);
  useEffect(() => {
    let timer;
    let stopped = false;
    const tick = async () => {
      if (!document.hidden) await load();
      if (!stopped) timer = setTimeout(tick, (busy || Date.now() < eagerUntil ? BUSY_SECONDS : IDLE_SECONDS) * 1000);
    };
    tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [load, busy, eagerUntil]);
  return { found, problem, load, hurry };
}

// Ask when `key` changes, as long as it is not null: it says all that the question depends on. What was there stays
// until the answer comes.
export function useAnswer(key, ask) {
  const [answer, setAnswer] = useState({ found: null, problem: null });
  useEffect(() => {
    let wanted = key !== null;
    if (wanted)
      ask().then(
        (found) => wanted && setAnswer({ found, problem: null }),
        (problem) => wanted && setAnswer((before) => ({ ...before, problem })),
      );
    return () => {
      wanted = false;
    };
  }, [key]);
  return answer;
}
