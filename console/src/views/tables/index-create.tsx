/** Creates an index of a table, with the fields of another index, changed or not, or with new ones. Its cost is previewed first. */
import { useState } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index, IndexUpdateEffect } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useAttempt } from './attempt';
import { buildCosts } from './effect';
import type { Noted } from './field-changes';
import { FieldChanges } from './field-changes';
import { text } from './words';

const indexes = client(IndexService);

/** What was previewed or created. */
interface Outcome {
  readonly name: string;
  readonly created: boolean;
  readonly effect: IndexUpdateEffect | undefined;
  /** The form's values then, as JSON: a preview counts only while they are the same. */
  readonly of: string;
}

/** `own` are the table's indexes. */
export const IndexCreate = ({ table, own, onCreated }: { table: string; own: readonly Index[]; onCreated: () => void }) => {
  const [name, setName] = useState(`${table}.`);
  const [source, setSource] = useState('');
  const [weight, setWeight] = useState('');
  const [noted, setNoted] = useState<readonly Noted[]>([]);
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  const { waiting, error, run } = useAttempt();
  const from = own.find(({ index }) => index === source);
  const of = JSON.stringify([name, from?.index, weight, noted.map(({ told }) => told)]);

  const create = (validateOnly: boolean): Promise<boolean> =>
    run(async (options) => {
      const index = name.trim();
      const request = {
        index,
        sourceIndex: from?.index ?? '',
        changes: noted.map(({ change }) => change),
        ...(weight !== '' && { weight: Math.trunc(Number(weight)) }),
        validateOnly,
      };
      const { effect } = await indexes.createIndex(request, options);
      setOutcome({ name: index, created: !validateOnly, effect, of });
      if (validateOnly) return;
      setName(`${table}.`);
      setNoted([]);
      setWeight('');
      onCreated();
    });

  const previewed = outcome !== undefined && !outcome.created && outcome.of === of;
  return (
    <details class="change" data-create>
      <summary>{text('newIndex')}</summary>
      <div class="row">
        <label>
          {text('indexName')}
          <input value={name} title={text('indexNameHint', { table })} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          {text('copied')}
          <select value={from?.index ?? ''} onChange={(event) => setSource(event.currentTarget.value)}>
            <option value="">{text('copiedNone')}</option>
            {own.map(({ index }) => (
              <option key={index} value={index}>
                {index}
              </option>
            ))}
          </select>
        </label>
        <label>
          {text('weight')}
          <input type="number" min={0} max={100} value={weight} title={text('weightHint')} onInput={(event) => setWeight(event.currentTarget.value)} />
        </label>
      </div>
      <FieldChanges
        fields={from?.fields ?? []}
        noted={noted}
        onNoted={(next) => {
          setNoted(next);
          setOutcome(undefined);
        }}
      />
      <Problem error={error} />
      <div class="row">
        <button type="button" disabled={waiting} onClick={() => void create(true)}>
          {text('preview')}
        </button>
        {previewed && (
          <button type="button" class="main" disabled={waiting} onClick={() => void create(false)}>
            {text('create')}
          </button>
        )}
      </div>
      {outcome !== undefined && (outcome.created || previewed) && (
        <p role="status" data-effect>
          {outcome.created ? text('indexCreated', { name: outcome.name }) : buildCosts(outcome.effect)}
        </p>
      )}
    </details>
  );
};
