/** A call as a part of a view: what it answered last, and whether it is under way or failed. */
import { ConnectError } from '@connectrpc/connect';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { PATIENCE_MS } from './calls';
import { credentials } from './session';

export interface Answer<T> {
  /** The last answer. It stays while the next call is under way, and after one that failed. */
  readonly value: T | undefined;
  /** Why the last call failed. */
  readonly error: ConnectError | undefined;
  readonly waiting: boolean;
  /** Calls again. */
  readonly again: () => void;
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
  const [state, setState] = useState<Omit<Answer<T>, 'again'>>({ value: undefined, error: undefined, waiting: key !== undefined });
  const [round, setRound] = useState(0);
  const latest = useRef(call);
  latest.current = call;
  const caller = credentials.value;
  const asCaller = useRef(caller);
  useEffect(() => {
    if (key === undefined) {
      setState((before) => (before.waiting ? { ...before, waiting: false } : before));
      return;
    }
    // What one caller was told isn't shown to the next.
    if (asCaller.current !== caller) setState({ value: undefined, error: undefined, waiting: true });
    asCaller.current = caller;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      setState((before) => ({ ...before, waiting: true }));
      try {
        const value = await latest.current({ signal: abort.signal, timeoutMs: PATIENCE_MS });
        if (!abort.signal.aborted) setState({ value, error: undefined, waiting: false });
      } catch (error) {
        if (!abort.signal.aborted) setState((before) => ({ ...before, error: ConnectError.from(error), waiting: false }));
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
  return { ...state, again };
};
