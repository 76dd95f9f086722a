/** A change of an index: put together, held against its cost, and applied. What is typed stays until it is done. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { useState } from 'preact/hooks';

import { PATIENCE_MS, client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index, IndexChangeSchema, IndexUpdateEffect } from '../../contract/souk/search/v1/index_pb';
import { IndexFieldType } from '../../contract/souk/search/v1/index_pb';
import { bytes, count } from '../../format';
import { Problem } from '../../problem';
import type { Choice } from './analyzer';
import { AnalyzerChoice, CHOICE, analyzer } from './analyzer';
import { fieldType } from './fields';
import { text } from './words';

type ChangeInit = MessageInitShape<typeof IndexChangeSchema>;
type What = 'add' | 'drop' | 'set';

const indexes = client(IndexService);

/** Types that a field which is added can have. */
const TYPES = [
  IndexFieldType.KEYWORD,
  IndexFieldType.TEXT,
  IndexFieldType.LONG,
  IndexFieldType.DOUBLE,
  IndexFieldType.BOOLEAN,
  IndexFieldType.DATE,
  IndexFieldType.GEO_POINT,
];

/** A change, and how it is told. */
interface Noted {
  readonly told: string;
  readonly change: ChangeInit;
}

/** What was previewed or applied: of a change, or of a build of the index as it is. */
interface Outcome {
  readonly rebuild: boolean;
  readonly applied: boolean;
  readonly effect: IndexUpdateEffect | undefined;
  /** The changes that it was of. */
  readonly of: string;
}

export const IndexChange = ({ index, onChanged }: { index: Index; onChanged: () => void }) => {
  const [what, setWhat] = useState<What>('add');
  const [field, setField] = useState('');
  const [type, setType] = useState(IndexFieldType.KEYWORD);
  const [source, setSource] = useState('');
  const [choice, setChoice] = useState<Choice>(CHOICE);
  const [noted, setNoted] = useState<readonly Noted[]>([]);
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  const [error, setError] = useState<ConnectError | undefined>(undefined);
  const [waiting, setWaiting] = useState(false);

  const texts = index.fields.filter((one) => one.type === IndexFieldType.TEXT).map((one) => one.field);
  const choices = what === 'set' ? texts : index.fields.map((one) => one.field);
  const named = what === 'add' ? field.trim() : (choices.find((one) => one === field) ?? choices[0] ?? '');
  const of = JSON.stringify(noted.map(({ told }) => told));

  const note = (event: Event): void => {
    event.preventDefault();
    if (named === '') return;
    const change = (): ChangeInit => {
      if (what === 'drop') return { kind: { case: 'dropField', value: { field: named } } };
      if (what === 'set') return { kind: { case: 'setAnalyzer', value: { field: named, analyzer: analyzer(choice) } } };
      const isText = type === IndexFieldType.TEXT;
      return { kind: { case: 'addField', value: { field: named, type, source: source.trim(), ...(isText && { analyzer: analyzer(choice) }) } } };
    };
    const details = what === 'add' ? `${fieldType(type)}${source.trim() === '' ? '' : ` ← ${source.trim()}`}` : what === 'set' ? choice.kind : '';
    setNoted([...noted, { told: `${text(what)}: ${named} ${details}`.trim(), change: change() }]);
    setOutcome(undefined);
    setField('');
  };

  const ask = async (rebuild: boolean, validateOnly: boolean): Promise<void> => {
    setWaiting(true);
    setError(undefined);
    try {
      const options = { timeoutMs: PATIENCE_MS };
      const changes = noted.map(({ change }) => change);
      const { effect } = rebuild
        ? await indexes.rebuildIndex({ index: index.index, validateOnly }, options)
        : await indexes.updateIndex({ index: index.index, changes, validateOnly }, options);
      setOutcome({ rebuild, applied: !validateOnly, effect, of });
      if (!validateOnly) {
        if (!rebuild) setNoted([]);
        onChanged();
      }
    } catch (failure) {
      setError(ConnectError.from(failure));
    } finally {
      setWaiting(false);
    }
  };

  const previewed = outcome !== undefined && !outcome.applied;
  return (
    <details class="change">
      <summary>{text('change')}</summary>
      <form onSubmit={note}>
        <div class="row">
          <label>
            {text('what')}
            <select value={what} onChange={(event) => setWhat(event.currentTarget.value as What)}>
              <option value="add">{text('add')}</option>
              <option value="drop">{text('drop')}</option>
              <option value="set">{text('set')}</option>
            </select>
          </label>
          {what === 'add' ? (
            <>
              <label>
                {text('name')}
                <input required value={field} onInput={(event) => setField(event.currentTarget.value)} />
              </label>
              <label>
                {text('type')}
                <select value={type} onChange={(event) => setType(Number(event.currentTarget.value))}>
                  {TYPES.map((one) => (
                    <option key={one} value={one}>
                      {fieldType(one)}
                    </option>
                  ))}
                </select>
              </label>
              <label>
                {text('source')}
                <input value={source} title={text('sourceHint')} onInput={(event) => setSource(event.currentTarget.value)} />
              </label>
            </>
          ) : (
            <label>
              {text('field')}
              <select value={named} onChange={(event) => setField(event.currentTarget.value)}>
                {choices.map((one) => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            </label>
          )}
          {(what === 'set' || (what === 'add' && type === IndexFieldType.TEXT)) && <AnalyzerChoice choice={choice} onChoice={setChoice} />}
          <button type="submit">{text('note')}</button>
        </div>
      </form>
      {noted.length > 0 && (
        <>
          <h4>{text('pending')}</h4>
          <ol>
            {noted.map(({ told }, place) => (
              <li key={`${place} ${told}`}>
                {told}{' '}
                <button type="button" class="plain" onClick={() => setNoted(noted.filter((_, other) => other !== place))}>
                  {text('remove')}
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
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
          {outcome.effect?.instant
            ? text('instant')
            : text('costs', { rows: count(outcome.effect?.rowsAbout ?? 0n), bytes: bytes(outcome.effect?.bytesAbout ?? 0n) })}
        </p>
      )}
    </details>
  );
};
