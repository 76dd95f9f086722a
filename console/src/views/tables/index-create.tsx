/** Creates an index of a table, with the fields of another index, changed or not, or with new ones. Its cost is previewed first. */
import { useState } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useChange } from './change';
import { buildCosts } from './effect';
import { FieldChanges } from './field-changes';
import { text } from './words';

const indexes = client(IndexService);

/** `own` are the table's indexes. */
export const IndexCreate = ({ table, own, onCreated }: { table: string; own: readonly Index[]; onCreated: () => void }) => {
  const [name, setName] = useState(`${table}.`);
  const [source, setSource] = useState('');
  const [weight, setWeight] = useState('');
  const from = own.find(({ index }) => index === source);
  const { noted, note, outcome, previewed, waiting, error, ask, settle } = useChange(name, from?.index, weight);

  const create = async (validateOnly: boolean): Promise<void> => {
    const index = name.trim();
    const request = {
      index,
      sourceIndex: from?.index ?? '',
      changes: noted.map(({ change }) => change),
      ...(weight !== '' && { weight: Math.trunc(Number(weight)) }),
      validateOnly,
    };
    const done = await ask(index, validateOnly, (options) => indexes.createIndex(request, options));
    if (!done || validateOnly) return;
    setName(`${table}.`);
    settle(noted);
    setWeight('');
    onCreated();
  };

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
      <FieldChanges fields={from?.fields ?? []} noted={noted} onNoted={note} />
      <Problem error={error} />
      <div class="row">
        <button type="button" disabled={waiting} onClick={() => void create(true)}>
          {text('preview')}
        </button>
        {previewed !== undefined && (
          <button type="button" class="main" disabled={waiting} onClick={() => void create(false)}>
            {text('create')}
          </button>
        )}
      </div>
      {outcome !== undefined && (
        <p role="status" data-effect>
          {outcome.applied ? text('indexCreated', { name: outcome.what }) : buildCosts(outcome.effect)}
        </p>
      )}
    </details>
  );
};
