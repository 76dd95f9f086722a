/** A change of an index: put together, held against its cost, and applied. */
import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useChange } from './change';
import { costs } from './effect';
import { FieldChanges } from './field-changes';
import { text } from './words';

const indexes = client(IndexService);

/** The change that is noted, or a build of the index as it is. */
type What = 'change' | 'rebuild';

export const IndexChange = ({ index, onChanged }: { index: Index; onChanged: () => void }) => {
  const { noted, note, outcome, previewed, waiting, error, ask, settle } = useChange();

  const change = async (what: What, validateOnly: boolean): Promise<void> => {
    const changes = noted.map(({ change }) => change);
    const done = await ask(what, validateOnly, (options) =>
      what === 'rebuild'
        ? indexes.rebuildIndex({ index: index.index, validateOnly }, options)
        : indexes.updateIndex({ index: index.index, changes, validateOnly }, options),
    );
    if (!done || validateOnly) return;
    if (what === 'change') settle(noted);
    onChanged();
  };

  return (
    <details class="change">
      <summary>{text('change')}</summary>
      <FieldChanges fields={index.fields} noted={noted} onNoted={note} />
      <Problem error={error} />
      <div class="row">
        <button type="button" disabled={waiting || noted.length === 0} onClick={() => void change('change', true)}>
          {text('preview')}
        </button>
        {previewed === 'change' && (
          <button type="button" class="main" disabled={waiting} onClick={() => void change('change', false)}>
            {text('apply')}
          </button>
        )}
        <button type="button" disabled={waiting} onClick={() => void change('rebuild', true)}>
          {text('rebuild')}
        </button>
        {previewed === 'rebuild' && (
          <button type="button" class="main" disabled={waiting} onClick={() => void change('rebuild', false)}>
            {text('applyRebuild')}
          </button>
        )}
      </div>
      {outcome !== undefined && (
        <p role="status" data-effect>
          {outcome.applied && `${text('applied')} `}
          {costs(outcome.effect)}
        </p>
      )}
    </details>
  );
};
