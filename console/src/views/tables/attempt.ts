/** A change that is asked for by a button: whether it is under way, and why it failed. */
import { ConnectError } from '@connectrpc/connect';
import { useState } from 'preact/hooks';

import { PATIENCE_MS } from '../../calls';

export interface AttemptOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Attempt {
  readonly waiting: boolean;
  /** Why the last one failed. */
  readonly error: ConnectError | undefined;
  /** Runs the call; true if it succeeded. An aborted call returns false and sets no error. */
  readonly run: (call: (options: AttemptOptions) => Promise<void>, signal?: AbortSignal) => Promise<boolean>;
  readonly forget: () => void;
}

export const useAttempt = (): Attempt => {
  const [waiting, setWaiting] = useState(false);
  const [error, setError] = useState<ConnectError | undefined>(undefined);
  return {
    waiting,
    error,
    run: async (call, signal) => {
      setWaiting(true);
      setError(undefined);
      try {
        await call({ timeoutMs: PATIENCE_MS, signal });
        return true;
      } catch (failure) {
        if (signal?.aborted !== true) setError(ConnectError.from(failure));
        return false;
      } finally {
        setWaiting(false);
      }
    },
    forget: () => setError(undefined),
  };
};
