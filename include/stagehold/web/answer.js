// What a part of the page asks the server for by itself, when it is opened.

const { useEffect, useState } = globalThis.React;

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
