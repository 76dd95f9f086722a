/** A hook for a call that a view shows: its last answer, and whether it is in flight or has failed. */
import { ConnectError } from '@connectrpc/connect';
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { PATIENCE_MS } from './calls';
import type { Credentials } from './session';
import { credentials } from './session';

export interface Answer<T> {
  /** The last answer. It stays while the next call is in flight, and after one that failed; without a key there is none. */
  readonly value: T | undefined;
  /** Whether the value is stale, the answer for an earlier key: the present call is in flight, or has failed. */
  readonly old: boolean;
  /** Why the last call for the present key failed. */
  readonly error: ConnectError | undefined;
  readonly waiting: boolean;
  /** Calls again. */
  readonly again: () => void;
}

/** The result of a call, and which call it was. */
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
 * Calls when `key` or the caller changes, and every `everyMs` while the page is visible; a call whose answer isn't needed any more is
 * cancelled. Without a `key` nothing is called. All that the request depends on has to be in `key`.
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
  // A layout effect: the call goes out before the next paint.
  useLayoutEffect(() => {
    // Answers to another caller aren't kept.
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
  // Answers to another caller aren't shown, not even until the effect above has run.
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
