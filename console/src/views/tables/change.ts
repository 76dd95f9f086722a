/** A change of an index in a form: noted, previewed, and applied. What is typed stays until it is done. */
import { useEffect, useMemo, useState } from 'preact/hooks';

import type { IndexUpdateEffect } from '../../contract/souk/search/v1/index_pb';
import type { Attempt, AttemptOptions } from './attempt';
import { useAttempt } from './attempt';
import type { Noted } from './field-changes';

/** What was previewed or applied. */
export interface Outcome {
  readonly what: string;
  readonly applied: boolean;
  readonly effect: IndexUpdateEffect | undefined;
  /** The form then, as JSON: a preview counts only while it is the same. */
  readonly of: string;
}

export interface Change extends Pick<Attempt, 'waiting' | 'error'> {
  readonly noted: readonly Noted[];
  readonly note: (noted: readonly Noted[]) => void;
  /** The last one, if it still counts. */
  readonly outcome: Outcome | undefined;
  /** What is previewed, and can be applied. */
  readonly previewed: string | undefined;
  /** Previews or applies `what`; true if it succeeded. A pending preview is aborted when the form changes. */
  readonly ask: (
    what: string,
    validateOnly: boolean,
    call: (options: AttemptOptions) => Promise<{ readonly effect?: IndexUpdateEffect | undefined }>,
  ) => Promise<boolean>;
  /** Forgets notes that are done; those made meanwhile stay. */
  readonly settle: (done: readonly Noted[]) => void;
}

/** `form`: the form's values other than the notes. A preview counts only for the values it was made with. */
export const useChange = (...form: readonly (string | undefined)[]): Change => {
  const [noted, setNoted] = useState<readonly Noted[]>([]);
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  const { waiting, error, run } = useAttempt();
  const of = JSON.stringify([form, noted.map(({ told }) => told)]);
  const previews = useMemo(() => new AbortController(), [of]);
  useEffect(() => () => previews.abort(), [previews]);
  const counts = outcome !== undefined && (outcome.applied || outcome.of === of) ? outcome : undefined;
  return {
    noted,
    note: (next) => {
      setNoted(next);
      setOutcome(undefined);
    },
    outcome: counts,
    previewed: counts?.applied === false ? counts.what : undefined,
    waiting,
    error,
    ask: (what, validateOnly, call) =>
      run(
        async (options) => {
          const { effect } = await call(options);
          setOutcome({ what, applied: !validateOnly, effect, of });
        },
        validateOnly ? previews.signal : undefined,
      ),
    settle: (done) => setNoted((now) => now.filter((one) => !done.includes(one))),
  };
};
