/** A change of an index: put together, held against its cost, and applied. What is typed stays until it is done. */
import { useState } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index, IndexUpdateEffect } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useAttempt } from './attempt';
import { costs } from './effect';
import type { Noted } from './field-changes';
import { FieldChanges } from './field-changes';
import { text } from './words';

const indexes = client(IndexService);

/** What was previewed or applied: of a change, or of a build of the index as it is. */
interface Outcome {
  readonly rebuild: boolean;
  readonly applied: boolean;
  readonly effect: IndexUpdateEffect | undefined;
  /** The changes that it was of. */
  readonly of: string;
}

export const IndexChange = ({ index, onChanged }: { index: Index; onChanged: () => void }) => {
  const [noted, setNoted] = useState<readonly Noted[]>([]);
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  const { waiting, error, run } = useAttempt();
  const of = JSON.stringify(noted.map(({ told }) => told));

  const ask = (rebuild: boolean, validateOnly: boolean): Promise<boolean> =>
    run(async (options) => {
      const changes = noted.map(({ change }) => change);
      const { effect } = rebuild
        ? await indexes.rebuildIndex({ index: index.index, validateOnly }, options)
        : await indexes.updateIndex({ index: index.index, changes, validateOnly }, options);
      setOutcome({ rebuild, applied: !validateOnly, effect, of });
      if (!validateOnly) {
        if (!rebuild) setNoted([]);
        onChanged();
      }
    });

  const previewed = outcome !== undefined && !outcome.applied;
  return (
    <details class="change">
      <summary>{text('change')}</summary>
      <FieldChanges
        fields={index.fields}
        noted={noted}
        onNoted={(next) => {
          setNoted(next);
          setOutcome(undefined);
        }}
      />
      <Problem error={error} />
      <div class="row">
        <button type="button" disabled={waiting || noted.length === 0} onClick={() => void ask(false, true)}>
          {text('preview')}
        </button>
        {previewed && !outcome.rebuild && outcome.of === of && (
          <button type="button" class="main" disabled={waiting} onClick={() => void ask(false, false)}>
            {text('apply')}
          </button>
        )}
        <button type="button" disabled={waiting} onClick={() => void ask(true, true)}>
          {text('rebuild')}
        </button>
        {previewed && outcome.rebuild && (
          <button type="button" class="main" disabled={waiting} onClick={() => void ask(true, false)}>
            {text('applyRebuild')}
          </button>
        )}
      </div>
      {outcome !== undefined && (outcome.applied || outcome.rebuild || outcome.of === of) && (
        <p role="status" data-effect>
          {outcome.applied && `${text('applied')} `}
          {costs(outcome.effect)}
        </p>
      )}
    </details>
  );
};
