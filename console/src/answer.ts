/** A call as a part of a view: what it answered last, and whether it is under way or failed. */
import { ConnectError } from '@connectrpc/connect';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { PATIENCE_MS } from './calls';
import type { Credentials } from './session';
import { credentials } from './session';

export interface Answer<T> {
  /** The last answer. It stays while the next call is under way, and after one that failed; without a key there is none. */
  readonly value: T | undefined;
  /** Whether the value answers another question than the present one: that call is under way, or has failed. */
  readonly old: boolean;
  /** Why the last call failed; what an earlier question failed with is forgotten. */
  readonly error: ConnectError | undefined;
  readonly waiting: boolean;
  /** Calls again. */
  readonly again: () => void;
}

/** What came of a call, and of which one. */
interface Came<What> {
  readonly what: What;
  readonly key: string;
  readonly caller: Credentials | undefined;
}

interface State<T> {
  readonly answer: Came<T> | undefined;
  readonly failure: Came<ConnectError> | undefined;
  readonly waiting: boolean;
}

/**
 * Calls when `key`, or who calls, changes, and each `everyMs` while the page is seen; a call whose answer nobody waits for any more is
 * cancelled. `undefined` as the key calls nothing. What `key` doesn't say must not change what is asked.
 */
export const useAnswer = <T>(
  key: string | undefined,
  call: (options: { signal: AbortSignal; timeoutMs: number }) => Promise<T>,
  everyMs?: number,
): Answer<T> => {
  const [{ answer, failure, waiting }, setState] = useState<State<T>>({ answer: undefined, failure: undefined, waiting: true });
  const [round, setRound] = useState(0);
  const latest = useRef(call);
  latest.current = call;
  const caller = credentials.value;
  useEffect(() => {
    // What another caller was told isn't shown any more, and isn't kept either.
    const isOthers = (came: Came<unknown> | undefined): boolean => came !== undefined && came.caller !== caller;
    setState((before) => (isOthers(before.answer) || isOthers(before.failure) ? { ...before, answer: undefined, failure: undefined } : before));
    if (key === undefined) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      setState((before) => ({ ...before, waiting: true }));
      try {
        const what = await latest.current({ signal: abort.signal, timeoutMs: PATIENCE_MS });
        if (!abort.signal.aborted) setState({ answer: { what, key, caller }, failure: undefined, waiting: false });
      } catch (error) {
        if (!abort.signal.aborted) setState((before) => ({ ...before, failure: { what: ConnectError.from(error), key, caller }, waiting: false }));
      }
      if (everyMs !== undefined && !abort.signal.aborted) timer = setTimeout(when, everyMs);
    };
    const when = (): void => {
      if (document.visibilityState === 'visible') void ask();
      else timer = setTimeout(when, everyMs);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, round, caller, everyMs]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  // What one caller was told isn't shown to the next.
  const own = key !== undefined && answer?.caller === caller ? answer : undefined;
  const failed = key !== undefined && failure?.key === key && failure.caller === caller;
  return {
    value: own?.what,
    old: own !== undefined && own.key !== key,
    error: failed ? failure.what : undefined,
    waiting: key !== undefined && waiting,
    again,
  };
};
